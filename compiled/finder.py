"""Finds compiled modules in a directory of their own, before Python finds their sources.

No library lies beside a source, where Python would load it whatever the source says by now.
"""

from __future__ import annotations

import sysconfig
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader
from importlib.util import spec_from_file_location
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType

SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))
GROUP: Final = "kafka_broker"
LIBRARY: Final = f"{GROUP}__mypyc"
"""Library with the code of all compiled modules, by mypyc's naming."""


class CompiledFinder(MetaPathFinder):
    """Knows the modules of one build."""

    def __init__(self, directory: Path, modules: Iterable[str]) -> None:
        self._directory = directory
        self._modules = frozenset({*modules, LIBRARY})

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the names of parameters are given
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Spec of a module's library; None for modules outside this build."""
        if fullname not in self._modules:
            return None
        location = str(library_path(self._directory, fullname))
        return spec_from_file_location(
            fullname, location, loader=ExtensionFileLoader(fullname, location)
        )


def library_path(directory: Path, module: str) -> Path:
    """The file that stands for one module."""
    return directory / (module.replace(".", "/") + SUFFIX)
