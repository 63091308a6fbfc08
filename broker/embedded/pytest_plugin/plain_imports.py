"""Keeps pytest from rewriting the assertions of the broker, as it does for plugins.

pytest rewrites all modules of a distribution with a plugin when they are imported. Ours contains
the whole broker: its first start in a process would take four times as long if the result is not
cached, as in a fresh container. There are no test assertions in these modules.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OURS: Final = __name__.partition(".")[0] + "."
"""Prefix of all module names of the wheel; of those of this package, in a clone."""


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
        """Result of the other finders, without pytest's, for a module of ours."""
        if not name.startswith(OURS):
            return None
        others = [one for one in sys.meta_path if one is not self and one is not self._rewriting]
        found = (one.find_spec(name, path, target) for one in others)
        return next((spec for spec in found if spec is not None), None)
