"""Rules of STYLE.md that a machine can check, besides ruff, mypy and import-linter."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

from tests.support import loop_watch

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "broker",
    "compiled",
    "config",
    "controller",
    "coordinator",
    "protocol",
    "spark_jobs",
    "storage",
)

LONGEST_FILE = 400
LONGEST_FUNCTION = 60

FORBIDDEN_STEMS = {"utils", "util", "common", "helpers", "helper", "misc", "shared", "base"}
FORBIDDEN_SUFFIXES = ("Impl", "Manager", "Helper", "Util", "Utils", "V2")
# Kafka itself writes "isr" in names of messages and keys.
ABBREVIATIONS = {"hw", "leo", "lso", "cfg", "resp", "idx", "ctx", "tmp", "buf", "mgr"}
LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BANNER = re.compile(r"\s*#\s*[-=*#~]{4,}")
# Clauses that stand for a noun, in the product but for spark_jobs, where some are left.
CLAUSE = re.compile(r"\s*(What|Who|How|Where|When|Whether|Which|Those|Why)(ever)?\b")
PLAIN_PACKAGES = {
    "broker",
    "compiled",
    "config",
    "controller",
    "coordinator",
    "protocol",
    "storage",
}

# Patterns, so that this file does not name what it looks for.
MACHINE_PATHS = re.compile(r"(?<![\w.$}])/(?:work|farm|root|home/\w+|tmp/team)/")

MOST_MODULES = 15
# One module each for a family of messages, or of keys: a list, not a room to search.
LISTS = {"protocol/messages": 47, "config/keys": 25}
# Words that end in -ing and are nouns of the field all the same.
NOUNS = {"follower_batching", "housekeeping", "listing", "testing"}

# Rooms of tests that put several modules through one thing, so that none of theirs is beside them.
ROOMS_OF_TESTS = {
    "broker/coordinators/failures",
    "broker/coordinators/golden",
    "spark_jobs/data",
    "spark_jobs/kills",
}

# What may hold up an event loop in a test. Strike out what is mended; nothing may be added.
EXCUSED = {
    "asyncio.base_events:BaseEventLoop.shutdown_default_executor",
    "protocol.compiler:compile_decoder",
    "protocol.compiler:compile_encoder",
    "storage.filesystem:LocalFile.read_at",
    "storage.filesystem:LocalFile.truncate",
    "storage.filesystem:LocalFile.write_at",
    "storage.filesystem:LocalFileSystem.make_directory",
    "storage.filesystem:LocalFileSystem.open",
    "storage.filesystem:LocalFileSystem.read",
    "storage.filesystem:LocalFileSystem.remove",
    "storage.filesystem:LocalFileSystem.rename",
    "storage.filesystem:LocalFileSystem.scan",
    "threading:Thread.join",
    "threading:Thread.start",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\n") if name and (path := ROOT / name).is_file()]


def source_files() -> list[Path]:
    return [path for path in tracked("*.py") if path.relative_to(ROOT).parts[0] in PACKAGES]


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def shown(path: Path, node: ast.AST | None = None) -> str:
    line = f":{node.lineno}" if isinstance(node, ast.expr | ast.stmt) else ""
    return f"{path.relative_to(ROOT)}{line}"


def functions(path: Path) -> list[Function]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, Function)]


def test_no_file_is_too_long() -> None:
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in tracked("*.py")}
    assert [f"{shown(path)}: {n}" for path, n in sizes.items() if n > LONGEST_FILE] == []


def test_no_function_is_too_long() -> None:
    long = [
        f"{shown(path, node)} {node.name}: {lines} lines"
        for path in tracked("*.py")
        for node in functions(path)
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert long == []


def test_package_files_hold_prose_only() -> None:
    for path in source_files():
        if path.name == "__init__.py":
            body = parsed(path).body
            assert len(body) == 1, f"{shown(path)} holds more than a docstring"
            prose = ast.get_docstring(parsed(path))
            assert prose, f"{shown(path)} has no docstring"


def test_package_docstrings_describe_the_package_and_its_entry_point() -> None:
    for package in PACKAGES:
        path = ROOT / package / "__init__.py"
        prose = " ".join((ast.get_docstring(parsed(path)) or "").lower().split())
        assert "start" in prose, f"{shown(path)} does not say where to start reading"
        assert "import" in prose, f"{shown(path)} does not say who may import it"


def test_every_module_postpones_its_annotations() -> None:
    missing = [
        shown(path)
        for path in tracked("*.py")
        if len(parsed(path).body) > 1
        and "from __future__ import annotations" not in path.read_text(encoding="utf-8")
    ]
    assert missing == []


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    clauses = [
        f"{shown(path, node)}: {node.value.value.strip().splitlines()[0]}"
        for path in source_files()
        if path.relative_to(ROOT).parts[0] in PLAIN_PACKAGES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and CLAUSE.match(node.value.value)
    ]
    assert clauses == []


def test_modules_and_classes_have_no_vague_names() -> None:
    stems = [shown(path) for path in tracked("*.py") if path.stem in FORBIDDEN_STEMS]
    folders = [shown(path) for path in tracked("*.py") if FORBIDDEN_STEMS & set(path.parent.parts)]
    classes = [
        f"{shown(path, node)} {node.name}"
        for path in source_files()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and node.name.endswith(FORBIDDEN_SUFFIXES)
    ]
    assert (stems, folders, classes) == ([], [], [])


def test_kafkas_nouns_are_written_in_full() -> None:
    short = [
        f"{shown(path, node)} {name}"
        for path in source_files()
        for node in ast.walk(parsed(path))
        for name in defined_names(node)
        if ABBREVIATIONS & set(name.lower().split("_"))
    ]
    assert short == []


def defined_names(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.arg(arg=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
    return []


def test_nothing_is_left_over_in_comments() -> None:
    found = [
        f"{shown(path)}:{line} {comment}"
        for path in tracked("*.py")
        for line, comment in comments(path)
        if LEFT_OVER.search(comment) or BANNER.match(comment)
    ]
    assert found == []


def comments(path: Path) -> list[tuple[int, str]]:
    """Return a file's comments if any is suspect; to find all comments takes long."""
    text = path.read_text(encoding="utf-8")
    if not (LEFT_OVER.search(text) or BANNER.search(text)):
        return []
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    suffixes = {".py", ".md", ".toml", ".txt", ".properties", ".java", ".xml", ""}
    found = [
        f"{shown(path)}: {match.group()}"
        for path in tracked("*")
        if path.suffix in suffixes and path != Path(__file__)
        for match in MACHINE_PATHS.finditer(path.read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def test_no_room_is_crowded() -> None:
    sizes: dict[str, int] = {}
    for path in [*source_files(), *tracked("tests/*.py")]:
        if path.name != "__init__.py":
            room = str(path.parent.relative_to(ROOT))
            sizes[room] = sizes.get(room, 0) + 1
    crowded = {room: n for room, n in sizes.items() if n > LISTS.get(room, MOST_MODULES)}
    assert crowded == {}


def test_every_package_has_an_init_file() -> None:
    rooms = {path.parent for path in source_files()}
    assert [shown(room) for room in rooms if not (room / "__init__.py").is_file()] == []


def test_no_module_is_named_by_a_gerund() -> None:
    gerunds = [
        shown(path)
        for path in source_files()
        if path.stem.endswith("ing") and path.stem not in NOUNS
    ]
    assert gerunds == []


def test_unit_tests_mirror_the_packages() -> None:
    rooms: dict[str, set[Path]] = {}
    for path in source_files():
        rooms.setdefault(path.stem, set()).add(path.parent.relative_to(ROOT))
    elsewhere = []
    for package in PACKAGES:
        for path in tracked(f"tests/{package}/*.py"):
            room = path.parent.relative_to(ROOT / "tests")
            named = rooms.get(path.stem.removeprefix("test_"), set())
            tested = {one for one in named if one.parts[0] == package}
            is_room = (ROOT / room).is_dir() or str(room) in ROOMS_OF_TESTS
            if not is_room or (tested and room not in tested):
                elsewhere.append(shown(path))
    assert elsewhere == []


def test_tests_are_named_for_behaviour() -> None:
    terse = [
        f"{shown(path, node)} {node.name}"
        for path in tracked("tests/*.py")
        for node in functions(path)
        if node.name.startswith("test_") and len(node.name.split("_")) < 4
    ]
    assert terse == []


@pytest.mark.parametrize("word", ["time.sleep", "unittest.mock", "from unittest import mock"])
def test_unit_tests_neither_sleep_nor_mock(word: str) -> None:
    waiting_is_the_point = ("interop", "benchmarks", "support", "simulation", "hostile")
    found = [
        shown(path)
        for path in tracked("tests/*.py")
        if path != Path(__file__)
        and path.relative_to(ROOT).parts[1] not in waiting_is_the_point
        and word in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_no_test_sends_a_signal_to_the_process_it_runs_in() -> None:
    """One that comes late, on a busy machine, would end whatever runs by then: start a program."""
    found = [
        shown(path, node)
        for path in tracked("tests/*.py")
        if "__main__" not in path.read_text(encoding="utf-8")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute) and node.attr in {"getpid", "raise_signal"}
    ]
    assert found == []


def test_nothing_is_raised_in_an_except_star() -> None:
    """Before Python 3.11.4 that arrives in a group of its own, which nobody expects."""
    raised = [
        shown(path, inner)
        for path in source_files()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.TryStar)
        for handler in node.handlers
        for inner in ast.walk(handler)
        if isinstance(inner, ast.Raise)
    ]
    assert raised == []


def test_excuses_for_blocking_an_event_loop_are_listed() -> None:
    assert loop_watch.EXCUSED.keys() == EXCUSED
    for name in loop_watch.EXCUSED:
        owner, attribute = loop_watch.resolved(name)
        assert callable(vars(owner)[attribute]), f"{name} is no more"
    assert all(loop_watch.EXCUSED.values()), "each has a reason"
