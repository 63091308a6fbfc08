"""The package `broker` of an installation: what people import or run under that name, and no more.

All code is in `kafka_broker_python`. `broker.testing` hands out what the package of that name
there has, and `python -m broker` runs what `python -m kafka_broker_python.broker` does. Somebody
whose own `broker` comes first uses the long names.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from scripts.wheel.imports import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = '''"""Runs `python -m {name}`."""

import runpy

runpy.run_module("{name}", run_name="__main__", alter_sys=True)
'''
PROSE = '"""Another name for `{name}`."""\n'


def aliases(root: Path) -> Iterator[tuple[str, str]]:
    """Paths and texts of the modules of that package; `root` is the directory of our code."""
    yield "broker/__init__.py", PROSE.format(name=f"{PACKAGE}.broker")
    for path in sorted(root.glob("broker/**/__main__.py")):
        module = path.parent.relative_to(root).as_posix()
        name = f"{PACKAGE}.{module.replace('/', '.')}"
        yield f"{module}/__main__.py", RUN.format(name=name)
        if module != "broker":
            yield f"{module}/__init__.py", PROSE.format(name=name)
    for path in root.glob("broker/testing.py"):
        name = f"{PACKAGE}.broker.testing"
        yield "broker/testing.py", _handing_out(name, path.read_text(encoding="utf-8"))


def _handing_out(name: str, text: str) -> str:
    """A module that has the public names of another, for type checkers too."""
    names = public_names(text)
    if not names:
        return PROSE.format(name=name)
    imported = "".join(f"    {one} as {one},\n" for one in names)
    return f"{PROSE.format(name=name)}\nfrom {name} import (\n{imported})\n"


def public_names(text: str) -> list[str]:
    """What a module hands out: its `__all__`, or else what it defines or imports as itself."""
    defined: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            defined |= {one.name for one in node.names if one.asname == one.name}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if "__all__" in names and node.value is not None:
                listed: list[str] = ast.literal_eval(node.value)
                return sorted(listed)
            defined |= names
    return sorted(name for name in defined if not name.startswith("_"))
