"""Builds wheel and sdist (PEP 517): `python -m build`, `pip install .`.

setuptools makes the wheel, of a tree that `tree` writes first; why: docs/decisions. The same files
make the same bytes: all are from the time SOURCE_DATE_EPOCH, or from 1980, when zip archives begin.

There is no editable installation: in a clone, everything runs as it lies there.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from setuptools import build_meta

from scripts.wheel.source_archive import write_archive
from scripts.wheel.tree import write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Settings = Mapping[str, str | list[str] | None] | None

ROOT: Final = Path(__file__).resolve().parents[2]
EPOCH: Final = "SOURCE_DATE_EPOCH"
FIRST_OF_ZIP: Final = "315532800"


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,  # noqa: ARG001 - given by PEP 517
) -> str:
    """Write the wheel to a directory; returns its name."""
    target = str(Path(wheel_directory).resolve())
    with _tree():
        return str(build_meta.build_wheel(target, config_settings))


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write what the wheel says of itself; returns the name of the directory in it."""
    target = str(Path(metadata_directory).resolve())
    with _tree():
        return str(build_meta.prepare_metadata_for_build_wheel(target, config_settings))


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    """Write the sdist to a directory; returns its name."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)
    with tempfile.TemporaryDirectory() as directory:
        made = prepare_metadata_for_build_wheel(directory, config_settings)
        info = (Path(directory) / made / "METADATA").read_text(encoding="utf-8")
    names = [*settings["tool"]["wheel"]["packages"], *settings["tool"]["wheel"]["sources"]]
    project = settings["project"]
    name = f"{project['name'].replace('-', '_')}-{project['version']}.tar.gz"
    target = Path(sdist_directory) / name
    write_archive(target, ROOT, names, int(os.environ.get(EPOCH, FIRST_OF_ZIP)), info)
    return name


@contextlib.contextmanager
def _tree() -> Iterator[None]:
    """Be in the tree that the wheel is made of."""
    os.environ.setdefault(EPOCH, FIRST_OF_ZIP)
    before = os.umask(0o022)  # it is in the wheel
    try:
        with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
            write_tree(ROOT, Path(directory))
            yield
    finally:
        os.umask(before)
