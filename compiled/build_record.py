"""Inputs of a build, so that it is never run beside other sources.

The compiler takes constants, types and layouts from every module that the compiled ones import, so
the record has a digest of each of these, and of the Python it was built for.
"""

from __future__ import annotations

import ast
import json
import sys
import sysconfig
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from compiled.modules import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE: Final = "record.json"
DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """Written last: a directory without one holds no build."""

    python: str
    modules: tuple[str, ...]
    """Compiled modules."""
    digests: dict[str, str]
    """Of all sources that it depends on, by path."""

    def write(self, directory: Path) -> None:
        """Put it beside the libraries."""
        text = json.dumps(asdict(self), indent=1)
        (directory / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> BuildRecord | None:
        """The record of the build in `directory`; None if there is none, or none to be read."""
        try:
            fields = json.loads((directory / FILE).read_text(encoding="utf-8"))
            return cls(fields["python"], tuple(fields["modules"]), dict(fields["digests"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def difference(self, root: Path) -> str | None:
        """Describe the first difference from the state of the build; None if there is none.

        Reads all sources: some milliseconds.
        """
        if self.python != this_python():
            return f"it was made for {self.python}, and this is {this_python()}"
        for path, digest in self.digests.items():
            if digest_of(root / path) != digest:
                return f"{path} has changed since"
        return None


def this_python() -> str:
    """Dependencies of compiled modules besides sources."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))} {suffix}"


def digest_of(path: Path) -> str | None:
    """Digest of a file's bytes; None if it cannot be read."""
    try:
        return blake2b(path.read_bytes(), digest_size=DIGEST_BYTES).hexdigest()
    except OSError:
        return None


def dependencies(root: Path, sources: Iterable[str]) -> list[str]:
    """Paths of `sources` and of everything of ours that they import, however indirectly."""
    waiting = list(sources)
    found: set[str] = set()
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            tree = ast.parse((root / source).read_text(encoding="utf-8"))
            names = {name for node in ast.walk(tree) for name in _imported(node)}
            waiting += [path for name in names if (path := path_of(root, name)) is not None]
    return sorted(found)


def _imported(node: ast.AST) -> list[str]:
    """Names that may be modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []
