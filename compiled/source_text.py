"""A module's text as the compiler needs it: the same, line for line, but for some annotations.

Annotations are never evaluated in our modules. The compiler evaluates those in the bodies of
classes all the same, and fails where a name was imported for type checkers only. So those of named
tuples are quoted:

    header: BatchHeader          header: "BatchHeader"

Dataclasses do not allow that; in their modules something else stands for these names:

    from __future__ import annotations
    from __future__ import annotations; globals().update(dict.fromkeys(['Callable'], object))

Where the name is of a compiled class, nothing helps, as its layout may not be known yet; such
a dataclass is refused, and becomes an ordinary class.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_IMPORT: Final = "from __future__ import annotations"


class UncompilableError(Exception):
    """A module cannot be compiled as it stands; the text says why."""


def compilable(text: str, compiled: frozenset[str] = frozenset()) -> str:
    """Text to compile in the place of `text`; `compiled` are the names of all such modules.

    Raises UncompilableError.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "__slots__":
            raise UncompilableError(f"line {node.lineno}: a compiled class has no __slots__")
        if isinstance(node, ast.AsyncFunctionDef):
            raise UncompilableError(
                f"line {node.lineno}: a compiled coroutine that is done cannot be closed"
            )
        if isinstance(node, ast.Name) and node.id == "cached_property":
            raise UncompilableError(f"line {node.lineno}: a compiled class caches no property")
    late = dict(_for_type_checkers(tree))
    fields = [one for node in ast.walk(tree) if _is_dataclass(node) for one in _annotations(node)]
    names = {node.id for field in fields for node in ast.walk(field) if isinstance(node, ast.Name)}
    for field in fields:
        if isinstance(field, ast.Name) and late.get(field.id) in compiled:
            raise UncompilableError(
                f"line {field.lineno}: a dataclass has a field of {field.id}, which is compiled "
                "and imported for type checkers only; make it an ordinary class"
            )
    return _quoted(_with_names(text, sorted(names & late.keys())), tree)


def _with_names(text: str, names: list[str]) -> str:
    if not names:
        return text
    assert text.count(f"{FIRST_IMPORT}\n") == 1
    line = f"{FIRST_IMPORT}; globals().update(dict.fromkeys({names}, object))"
    return text.replace(FIRST_IMPORT, line, 1)


def _quoted(text: str, tree: ast.Module) -> str:
    """The text with quotes around the annotations of named tuples, which stand in one line each."""
    lines = text.split("\n")
    for node in ast.walk(tree):
        for annotation in _annotations(node) if _is_named_tuple(node) else ():
            quoted = f'"{ast.unparse(annotation)}"'
            number = annotation.lineno - 1
            line = lines[number].encode()
            assert annotation.end_lineno == annotation.lineno, line
            before, after = line[: annotation.col_offset], line[annotation.end_col_offset :]
            lines[number] = before.decode() + quoted + after.decode()
    return "\n".join(lines)


def _is_named_tuple(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases)


def _is_dataclass(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        "dataclass" in ast.unparse(decorator) for decorator in node.decorator_list
    )


def _annotations(node: ast.AST) -> list[ast.expr]:
    assert isinstance(node, ast.ClassDef)
    return [one.annotation for one in node.body if isinstance(one, ast.AnnAssign)]


def _for_type_checkers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names that a module has only while it is checked, and the modules they come from."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for node in ast.walk(statement):
                if isinstance(node, ast.ImportFrom):
                    yield from (
                        (alias.asname or alias.name, node.module or "") for alias in node.names
                    )
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, ""
