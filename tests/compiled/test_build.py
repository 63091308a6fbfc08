"""Compiles a module and runs it: some seconds, most of them the compiler's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from compiled import modules
from compiled.activation import ROOT, BuildError
from compiled.build import build

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

SOURCE = """
from __future__ import annotations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from protocol.records.places import Place

class Found(NamedTuple):
    place: Place | None
    view: memoryview

def find(view: memoryview) -> Found:
    assert len(view) > 1, "too short"
    return Found(None, view)
"""
USE = """
from compiled.activation import activate
activate()
from protocol.records import found
print(type(found.find).__name__, found.find(memoryview(b"ab")).view.tobytes())
try:
    found.find(memoryview(b"a"))
except AssertionError as error:
    print(error)
"""
PLACES = "from __future__ import annotations\n\nclass Place:\n    pass\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree of our own package and two modules of one that is compiled."""
    monkeypatch.setattr(modules, "SINGLE", ())
    shutil.copytree(ROOT / "compiled", tmp_path / "compiled")
    records = tmp_path / "protocol" / "records"
    records.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    (records.parent / "__init__.py").touch()
    (records / "__init__.py").touch()
    (records / "found.py").write_text(SOURCE)
    (records / "places.py").write_text(PLACES)
    return tmp_path


def run(tree: Path, choice: str = "auto") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tree,
        env={"BROKER_COMPILED": choice, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_compiled_module_is_run_until_its_source_changes(tree: Path) -> None:
    record = build(tree / "build" / "compiled", tree)

    assert record.modules == ("protocol.records.found", "protocol.records.places")
    assert run(tree, "yes").stdout == "builtin_function_or_method b'ab'\ntoo short\n"
    assert run(tree, "no").stdout == "function b'ab'\ntoo short\n"

    places = tree / "protocol" / "records" / "places.py"
    places.write_text(PLACES + "\n\nclass Elsewhere:\n    pass\n")

    assert run(tree).stdout == "function b'ab'\ntoo short\n"
    assert "places.py has changed since" in run(tree, "yes").stderr


def test_without_its_packages_the_extra_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mypyc", None)

    with pytest.raises(BuildError, match=r"not installed: mypy\. Install .*python\[compiled\]"):
        build(tree / "build" / "compiled", tree)


@pytest.mark.timeout(300)
def test_failed_build_leaves_the_old_one(tree: Path) -> None:
    target = tree / "build" / "compiled"
    target.mkdir(parents=True)
    (target / "old").touch()
    (tree / "protocol" / "records" / "found.py").write_text("def broken() -> int:\n    return ''\n")

    with pytest.raises(BuildError, match="Incompatible return value type"):
        build(target, tree)

    assert [path.name for path in target.parent.iterdir()] == ["compiled"]
    assert [path.name for path in target.iterdir()] == ["old"]
