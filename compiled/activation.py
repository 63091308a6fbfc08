"""Decides, once for a process, whether it runs the compiled build, and gives the reason.

Each entry point of a process calls `activate` before anything else of ours is imported:

    BROKER_COMPILED          a build that is right    one that is not       none
    not set, or `auto`       used                     plain Python, told    plain Python
    `no`                     plain Python             plain Python          plain Python
    `yes`                    used                     BuildError            BuildError

A build is right if every source that it was built from is the same to the byte, and this Python the
one that it was built for. It lies in `build/compiled` of a source tree, or, of an installed
package, below the environment's prefix; `BROKER_COMPILED_DIRECTORY` names another place.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from compiled.build_record import BuildRecord
from compiled.finder import CompiledFinder

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICE: Final = "BROKER_COMPILED"
DIRECTORY: Final = "BROKER_COMPILED_DIRECTORY"
ROOT: Final = Path(__file__).resolve().parents[1]
"""Root of our code."""


class BuildError(Exception):
    """The requested compiled build cannot be used; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Activation:
    """Decision of a process."""

    is_compiled: bool
    reason: str
    """For people."""
    is_outdated: bool = False
    """True if there is a build that is not used because it is not right."""

    @property
    def answer(self) -> str:
        """`yes` or `no`, as it stands in logs and metrics."""
        return "yes" if self.is_compiled else "no"


_activations: list[Activation] = []
"""None before the first call of `activate`, one afterwards."""


def activate() -> Activation:
    """Have the modules of the build, if it is to be used, found from now on.

    Later calls change nothing. Raises BuildError.
    """
    if not _activations:
        directory = build_directory(os.environ)
        activation, record = decide(os.environ, directory, ROOT)
        if record is not None:
            early = [name for name in record.modules if name in sys.modules]
            assert not early, f"imported before it was decided what to run: {early}"
            sys.meta_path.insert(0, CompiledFinder(directory, record.modules))
        _activations.append(activation)
    return _activations[0]


def activation() -> Activation:
    """Decision of this process."""
    return _activations[0] if _activations else Activation(False, "nobody asked for it")


def decide(
    environ: Mapping[str, str], directory: Path, root: Path
) -> tuple[Activation, BuildRecord | None]:
    """Decision of `activate`, and the record of the build if it is to be used."""
    choice = environ.get(CHOICE, "auto")
    if choice not in {"auto", "no", "yes"}:
        raise BuildError(f"{CHOICE} is {choice!r}: it must be yes, no or auto")
    if choice == "no":
        return Activation(False, f"{CHOICE}=no"), None
    record = BuildRecord.read(directory)
    if record is None:
        problem = f"no build in {directory}"
    elif (difference := record.difference(root)) is None:
        return Activation(True, f"{len(record.modules)} modules from {directory}"), record
    else:
        problem = f"the build in {directory} is not used: {difference}"
    if choice == "yes":
        raise BuildError(f"{CHOICE}=yes, but {problem} (make compile)")
    return Activation(False, problem, is_outdated=record is not None), None


def build_directory(environ: Mapping[str, str], root: Path = ROOT) -> Path:
    """Directory of the build, current or future."""
    if DIRECTORY in environ:
        return Path(environ[DIRECTORY])
    if (root / "pyproject.toml").is_file():
        return root / "build" / "compiled"
    return Path(sys.prefix) / "lib" / "kafka-broker-python" / "compiled"
