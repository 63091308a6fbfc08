"""The tree that a wheel is made of: one package that holds ours, and `broker` as another name."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from scripts.wheel.aliases import aliases
from scripts.wheel.imports import PACKAGE, UnpackableError, installed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READABLE: Final = 0o644
BESIDE: Final = ("LICENSE", "README.md")
INIT: Final = '''"""A Kafka-compatible broker in pure Python.

The packages here have no other name than this one before theirs: `broker`, with which to start, and
what it is made of. `broker.testing` is for tests, and also found under that name alone.
"""
'''
MAIN: Final = f'''"""Runs the command of the installation."""

from {PACKAGE}.broker.command import main

main()
'''
SETUPTOOLS: Final = f"""
[tool.setuptools]
include-package-data = false

[tool.setuptools.packages.find]
include = ["broker*", "{PACKAGE}*"]

[tool.setuptools.package-data]
"*" = ["*"]
"""


def write_tree(root: Path, target: Path) -> None:
    """Write it to `target`, with a pyproject.toml for setuptools. Raises UnpackableError."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)["tool"]["wheel"]
    files = {path: (root / path).read_text(encoding="utf-8") for path in BESIDE}
    files["pyproject.toml"] = project(text, settings["packages"])
    files |= {f"{PACKAGE}/__init__.py": INIT, f"{PACKAGE}/__main__.py": MAIN}
    files |= {f"{PACKAGE}/{path}": code for path, code in _code(root, settings)}
    files |= aliases(root)
    files |= {f"{package}/py.typed": "" for package in (PACKAGE, "broker")}
    for path, content in files.items():
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        place.chmod(READABLE)


def project(text: str, packages: list[str]) -> str:
    """The project's table, with the names that modules have in the wheel, and no tools' tables."""
    kept, _, _ = text.partition("\n[tool.")
    names = "|".join(packages)
    target = re.compile(rf'^([\w-]+ = ")({names})(?=[.:][.:\w]*"$)', re.MULTILINE)
    return target.sub(rf"\1{PACKAGE}.\2", kept) + SETUPTOOLS


def _code(root: Path, settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    packages: list[str] = settings["packages"]
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            try:
                yield name, installed(path.read_text(encoding="utf-8"), packages, root)
            except UnpackableError as error:
                raise UnpackableError(f"{name}: {error}") from None
    for pattern in settings["data"]:
        for path in sorted(root.glob(pattern)):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
