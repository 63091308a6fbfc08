"""The dependencies of a build, and detection of their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compiled.build_record import FILE, BuildRecord, dependencies, digest_of, this_python

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, sources: dict[str, str]) -> None:
    for name, text in sources.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def record_of(root: Path, *paths: str, python: str | None = None) -> BuildRecord:
    digests = {path: digest_of(root / path) or "" for path in paths}
    return BuildRecord(python or this_python(), ("a.one",), digests)


def test_everything_that_is_imported_counts_however_indirectly(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/__init__.py": "",
            "a/one.py": "from b import two\nimport os",
            "b/__init__.py": "",
            "b/two.py": "if TYPE_CHECKING:\n    from b.three import Thing",
            "b/three.py": "import a.one",
            "b/four.py": "",
        },
    )

    found = dependencies(tmp_path, ["a/one.py"])

    assert found == ["a/one.py", "b/__init__.py", "b/three.py", "b/two.py"]


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.py": "x = 1"})
    record = record_of(tmp_path, "a/one.py")

    record.write(tmp_path)

    assert BuildRecord.read(tmp_path) == record
    assert record.difference(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"python": "x"}', '{"digests": 3}', "\x00"])
def test_a_damaged_build_record_is_read_as_none(tmp_path: Path, text: str) -> None:
    write(tmp_path, {FILE: text})

    assert BuildRecord.read(tmp_path) is None


def test_source_that_changed_by_a_byte_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.py": "x = 1", "a/two.py": "y = 1"})
    record = record_of(tmp_path, "a/one.py", "a/two.py")
    write(tmp_path, {"a/two.py": "y = 2"})

    assert record.difference(tmp_path) == "a/two.py has changed since"


def test_source_that_is_gone_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"a/one.py": "x = 1"})
    record = record_of(tmp_path, "a/one.py")
    (tmp_path / "a/one.py").unlink()

    assert record.difference(tmp_path) == "a/one.py has changed since"


def test_a_build_for_another_python_is_outdated(tmp_path: Path) -> None:
    record = record_of(tmp_path, python="cpython 2.7.1 .so")

    assert (record.difference(tmp_path) or "").startswith("it was made for cpython 2.7.1 .so")
