"""Makes the compiled build: needs mypy, setuptools and a C compiler, and takes minutes.

The sources are copied, compiled beside the old build, and put in its place when all is done; a
process that runs the old one keeps its libraries until it ends.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from compiled import modules
from compiled.activation import ROOT, BuildError
from compiled.build_record import BuildRecord, dependencies, digest_of, this_python
from compiled.finder import GROUP, LIBRARY, library_path
from compiled.source_text import UncompilableError, compilable

PLACE: Final = modules.PREFIX.replace(".", "/")
NEEDED: Final = {"mypyc": "mypy", "setuptools": "setuptools"}
"""Modules that the broker alone does not bring, and the packages that do."""
SHOWN_LINES: Final = 20
OPTIMIZATION: Final = "2"
"""Of the C compiler, by default."""

SCRIPT: Final = """
import sys
from mypyc.build import mypycify
from setuptools import setup

sources = sys.argv[1:]
options = ["--config-file=", "--namespace-packages", "--explicit-package-bases"]
options.append("--ignore-missing-imports")
extensions = mypycify(
    [*options, *sources], opt_level={optimization!r}, debug_level="0", target_dir="c",
    group_name={group!r},
)
arguments = ["--quiet", "build_ext", "--build-lib", "lib", "--build-temp", "objects"]
setup(name={group!r}, packages=[], ext_modules=extensions, script_args=arguments)
"""


def build(target: Path, root: Path = ROOT, optimization: str = OPTIMIZATION) -> BuildRecord:
    """Compile the modules of the code in `root` into `target`; returns the record.

    Raises BuildError.
    """
    _check_installed()
    sources = modules.sources(root)
    needed = dependencies(root, sources)
    digests = {path: digest_of(root / path) or "" for path in needed}
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compiled-", dir=target.parent) as work:
        _copy(root, Path(work) / PLACE, needed, sources)
        _compile(Path(work), [f"{PLACE}{source}" for source in sources], optimization)
        made = Path(work) / "lib"
        names = tuple(map(modules.name_of, sources))
        missing = [name for name in (*names, LIBRARY) if not library_path(made, name).is_file()]
        if missing:
            raise BuildError(f"the compiler has made no {', '.join(missing)}")
        record = BuildRecord(this_python(), names, digests)
        record.write(made)
        if target.exists():
            target.rename(Path(work) / "old")
        made.rename(target)
    return record


def _check_installed() -> None:
    missing = [name for module, name in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        how = "pip install 'kafka-broker-python[compiled]' (in the clone: make compile)"
        raise BuildError(
            f"not installed: {', '.join(missing)}. Install the extra `compiled`: {how}"
        )


def _copy(root: Path, work: Path, needed: list[str], sources: list[str]) -> None:
    compiled = frozenset(map(modules.name_of, sources))
    for path in needed:
        text = (root / path).read_text(encoding="utf-8")
        copy = work / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path in sources:
            try:
                text = compilable(text, compiled)
            except UncompilableError as error:
                raise BuildError(f"{path}: {error}") from None
        copy.write_text(text, encoding="utf-8")


def _compile(work: Path, sources: list[str], optimization: str) -> None:
    compiler = os.environ.get("CC", "gcc").split()[0]
    if shutil.which(compiler) is None:
        raise BuildError(f"there is no C compiler called {compiler} (name one with CC)")
    script = SCRIPT.format(optimization=optimization, group=GROUP)
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", script, *sources],
        cwd=work,
        env={**os.environ, "PYTHONPATH": str(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-SHOWN_LINES:])
        raise BuildError(f"the compiler failed:\n{last}")
