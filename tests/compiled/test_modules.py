"""The list of compiled modules: who changes one learns here what a compiler would say later."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from compiled import modules
from compiled.activation import ROOT
from compiled.source_text import compilable

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = modules.sources(ROOT)
TREES = {source: ast.parse((ROOT / source).read_text(encoding="utf-8")) for source in SOURCES}
CLASSES = frozenset(
    node.name
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
)
CONSTANTS = frozenset(
    (modules.name_of(source), node.target.id)
    for source, tree in TREES.items()
    for node in tree.body
    if isinstance(node, ast.AnnAssign)
    and isinstance(node.target, ast.Name)
    and "Final" in ast.unparse(node.annotation)
)
BEGINS = """
import sys
from compiled import modules
import broker.__main__, broker.command, broker.node.member_lock, storage.compaction.__main__
print([name for name in sys.modules if name in {names}])
"""


def test_every_listed_module_exists() -> None:
    named = [*modules.ROOMS, *modules.SINGLE, *modules.PURE]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("source", SOURCES)
def test_module_can_be_compiled_as_it_stands(source: str) -> None:
    compiled = frozenset(map(modules.name_of, SOURCES))
    text = (ROOT / source).read_text(encoding="utf-8")

    changed = compilable(text, compiled)

    assert changed.count("\n") == text.count("\n")


@pytest.mark.parametrize("source", SOURCES)
def test_a_compiled_exception_does_not_share_its_name_with_another(source: str) -> None:
    """A compiled function takes the first class bound to a name as the type of that name.

    Another exception that is caught by the same name is then a TypeError.
    """
    functions = ast.walk(TREES[source])
    assert [line for function in functions for line in shared_names(function)] == []


def test_names_shared_by_exceptions_are_found() -> None:
    handlers = "def f():\n try: g()\n except {} as error: pass\n except {} as {}: pass"
    ours = handlers.format("DamagedDelaysError", "ApiError", "error")
    others = handlers.format("ValueError", "Exception", "error")
    apart = handlers.format("DamagedDelaysError", "ApiError", "refusal")

    functions = [ast.parse(text).body[0] for text in (ours, others, apart)]
    assert [shared_names(function) for function in functions] == [[4], [], []]


def shared_names(scope: ast.AST) -> list[int]:
    """Lines where `scope` binds another exception to the name of one that is compiled."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    first: dict[str, str] = {}
    lines = []
    for node in ast.walk(scope):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type:
            caught = ast.unparse(node.type)
            if first.setdefault(node.name, caught) != caught and first[node.name] in CLASSES:
                lines.append(node.lineno)
    return lines


def test_tests_that_set_a_constant_of_a_compiled_module_are_marked() -> None:
    """A `Final` is part of the machine code: a test that sets another one changes nothing there."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [f"{test.relative_to(ROOT)}:{line}" for test in tests for line in unmarked(test)] == []


def test_unmarked_tests_are_found(tmp_path: Path) -> None:
    body = """
    from storage.delays import delay_rebuild
    {}def test(monkeypatch):
        monkeypatch.setattr(delay_rebuild, "{}", 1)
    """
    found = []
    for number, what in enumerate(
        [
            ("", "HEADERS_AT_A_TIME"),
            ("", "_numbers"),
            ("@pytest.mark.interpreted\n    ", "HEADERS_AT_A_TIME"),
        ]
    ):
        path = tmp_path / f"{number}.py"
        path.write_text(textwrap.dedent(body.format(*what)), encoding="utf-8")
        found.append(unmarked(path))
    assert found == [[4], [], []]


def unmarked(test: Path) -> list[int]:
    """Lines that set a constant of a compiled module in a test that is not `interpreted`."""
    text = test.read_text(encoding="utf-8")
    if "setattr(" not in text:
        return []
    tree = ast.parse(text)
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return [
        call.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and "pytest.mark.interpreted" not in map(ast.unparse, function.decorator_list)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).endswith(".setattr")
        and len(call.args) == 3
        and isinstance(call.args[1], ast.Constant)
        and (names.get(ast.unparse(call.args[0])), call.args[1].value) in CONSTANTS
    ]


@pytest.mark.process
def test_nothing_compiled_is_imported_before_it_is_decided_what_to_run() -> None:
    program = BEGINS.format(names=sorted(map(modules.name_of, SOURCES)))
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"
