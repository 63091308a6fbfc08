"""The dictionary of those that have nothing to note yet: one for all of them.

An empty one of its own takes 64 bytes, and a partition would have three, most of them for ever.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn


class _NothingYet(dict[Any, Any]):
    """Empty and read-only: each owner replaces it with its own dictionary on the first write."""

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise AssertionError(f"{key!r} would be noted of everybody")


NOTHING_YET: Final = _NothingYet()
