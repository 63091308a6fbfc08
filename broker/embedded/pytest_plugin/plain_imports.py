"""Keeps pytest from rewriting the assertions of the broker, as it does for plugins.

Of a distribution that has a plugin, pytest rewrites all modules when they are imported. The whole
broker is in ours: its first start in a process would take four times as long, wherever the outcome
is not cached, as in a fresh container. Nobody's test asserts anything in there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OURS: Final = __name__.partition(".")[0] + "."
"""What the names of all modules of the wheel begin with; those of this package, in a clone."""


class PlainImports:
    """A finder of modules that comes before pytest's, and asks all others for those of ours."""

    def __init__(self, rewriting: object) -> None:
        """`rewriting` is pytest's finder."""
        self._rewriting = rewriting

    def install(self) -> None:
        """Have modules found by it from now on."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """The counterpart of `install`."""
        sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What another finder but pytest's finds, for a module of ours."""
        if not name.startswith(OURS):
            return None
        others = [one for one in sys.meta_path if one is not self and one is not self._rewriting]
        found = (one.find_spec(name, path, target) for one in others)
        return next((spec for spec in found if spec is not None), None)
