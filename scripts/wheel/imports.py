"""Gives modules the imports they need in an installation, where all are in one package.

    from config.key import Key      from kafka_broker_python.config.key import Key
    import broker                   import kafka_broker_python.broker as broker

Import statements are all that changes. What names a module in any other way takes the name from the
module (`__name__`), and so is right in either place; text that looks like the name of a module of
ours is refused here, as it would be wrong in one of them.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

PACKAGE: Final = "kafka_broker_python"
FOUND_FROM_FILE: Final = re.compile(
    r"(sys\.path\.insert\(0, str\(Path\(__file__\)\.resolve\(\)\.parents\[)(\d+)(?=\]\)\))"
)
"""How a module that is run as a file finds the others: in an installation, one folder above."""
TAKING_NAMES: Final = frozenset({"removesuffix", "usage_name"})
"""Functions that are given names as they are here."""

Edit = tuple[int, int, str, str]
"""A line, where in it to begin (in bytes), a pattern for what is there, and the new text."""


class UnpackableError(Exception):
    """A module would not work where it is installed; the text says why."""


def installed(text: str, packages: Collection[str], root: Path) -> str:
    """The text of a module as it is installed; `packages` are those below `root`.

    Raises UnpackableError.
    """
    tree = ast.parse(text)
    _refuse_names_in_text(tree, packages, root)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    lines = text.encode().split(b"\n")
    edits = [edit for node in ast.walk(tree) for edit in _edits(node, packages, used)]
    for number, offset, pattern, new in sorted(edits, reverse=True):  # from right to left
        line = lines[number - 1]
        after = re.sub(pattern.encode(), new.encode(), line[offset:], count=1)
        lines[number - 1] = line[:offset] + after
    changed = b"\n".join(lines).decode()
    return FOUND_FROM_FILE.sub(lambda found: f"{found[1]}{int(found[2]) + 1}", changed)


def _edits(node: ast.AST, packages: Collection[str], used: set[str]) -> Iterator[Edit]:
    if isinstance(node, ast.ImportFrom) and not node.level and _is_ours(node.module, packages):
        yield node.lineno, node.col_offset, r"^from\s+", f"from {PACKAGE}."
    if not isinstance(node, ast.Import):
        return
    for alias in node.names:
        if not _is_ours(alias.name, packages):
            continue
        package, _, rest = alias.name.partition(".")
        new = f"{PACKAGE}.{alias.name}"
        if alias.asname is None and not rest:
            new += f" as {package}"
        elif alias.asname is None and package in used:
            why = f"line {node.lineno}: import {alias.name} as something, or import from it"
            raise UnpackableError(why)
        yield alias.lineno, alias.col_offset, rf"^{re.escape(alias.name)}", new


def _is_ours(module: str | None, packages: Collection[str]) -> bool:
    return module is not None and module.partition(".")[0] in packages


def _refuse_names_in_text(tree: ast.AST, packages: Collection[str], root: Path) -> None:
    allowed = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _name_of(node.func) in TAKING_NAMES
        for argument in node.args
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if id(node) not in allowed and _is_module(node.value, packages, root):
            why = f"{node.value!r} has another name once installed: use __name__"
            raise UnpackableError(f"line {node.lineno}: {why}")


def _name_of(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _is_module(text: str, packages: Collection[str], root: Path) -> bool:
    """Whether text is the name of a module below a package, which other text hardly is."""
    if not re.fullmatch(r"\w+(\.\w+)+", text) or not _is_ours(text, packages):
        return False
    path = root / text.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()
