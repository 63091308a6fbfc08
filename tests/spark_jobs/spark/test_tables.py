"""Tables: what a version holds, and what is left of one that was interrupted anywhere."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from spark_jobs.errors import BadOptionError
from spark_jobs.spark import tables
from spark_jobs.spark.table_ownership import BackfillTable, StreamTable
from spark_jobs.spark.tables import NO_VERSION, Merge, Shape, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

WINDOWS = Shape(key=("start", "name"), period="start")
SUMS = Shape(key=("start", "name"), period="start", merge=Merge.ADD, sums=("count",))
EVENTS = Shape(key=("start", "name"), period="start", merge=Merge.APPEND, period_characters=10)


def _line(start: str, name: str, count: int) -> str:
    return json.dumps({"start": start, "name": name, "count": count})


def _rows(table: Table) -> list[tuple[str, str, int]]:
    return sorted((row["start"], row["name"], row["count"]) for row in table.rows())


def test_a_new_row_takes_the_place_of_the_one_with_its_key(tmp_path: Path) -> None:
    table = Table(tmp_path, WINDOWS)
    table.commit(0, [_line("2013-03-01", "a", 1), _line("2013-04-01", "a", 2)])
    table.commit(1, [_line("2013-03-01", "a", 5), _line("2013-03-02", "b", 6)])
    assert _rows(table) == [
        ("2013-03-01", "a", 5),
        ("2013-03-02", "b", 6),
        ("2013-04-01", "a", 2),
    ]
    assert sorted(row["count"] for row in table.changed()) == [5, 6]


def test_numbers_are_added_up_once_per_version(tmp_path: Path) -> None:
    table = Table(tmp_path, SUMS)
    table.commit(0, [_line("2013-03-01", "a", 1), _line("2013-03-01", "b", 7)])
    for _ in range(2):
        table.commit(1, [_line("2013-03-01", "a", 2)])
        assert [row["count"] for row in table.changed()] == [3]
    assert _rows(table) == [("2013-03-01", "a", 3), ("2013-03-01", "b", 7)]


def test_rows_are_appended_and_small_files_put_together(tmp_path: Path) -> None:
    table = Table(tmp_path, EVENTS)
    for version in range(tables.MOST_SMALL_FILES + 3):
        table.commit(version, [_line("2013-03-01T05", str(version), version)])
        assert len(_rows(table)) == version + 1
    assert len(list((tmp_path / "latest").glob("*.jsonl"))) == 4


def test_more_rows_than_the_buffer_takes_are_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_BUFFERED_ROWS", 3)
    table = Table(tmp_path, EVENTS)
    table.commit(0, (_line(f"2013-03-0{1 + i % 2}", str(i), i) for i in range(10)))
    assert sorted(row["count"] for row in table.rows()) == list(range(10))


def test_pandas_reads_the_latest_version(tmp_path: Path) -> None:
    table = Table(tmp_path, WINDOWS)
    table.commit(0, [_line("2013-03-01", "Zürich", 1)])
    table.commit(1, [_line("2013-04-01", "a", 2)])
    files = sorted((tmp_path / "latest").glob("*.jsonl"))
    frame = pd.concat(pd.read_json(path, lines=True) for path in files)
    assert list(zip(frame.name, frame["count"], strict=True)) == [("Zürich", 1), ("a", 2)]


def test_who_has_opened_a_version_still_reads_it_after_the_next(tmp_path: Path) -> None:
    table = Table(tmp_path, WINDOWS)
    table.commit(0, [_line("2013-03-01", "a", 1)])
    opened = (tmp_path / "latest").resolve()
    table.commit(1, [_line("2013-03-01", "a", 2)])
    assert '"count":1' in (opened / "2013-03.jsonl").read_text()


def test_versions_are_forgotten_when_the_latest_is_a_minute_younger(tmp_path: Path) -> None:
    table = Table(tmp_path, WINDOWS)
    table.commit(0, [_line("2013-03-01", "a", 1)])
    first = (tmp_path / "latest").resolve()
    os.utime(first, (0, 0))
    table.commit(1, [_line("2013-04-01", "a", 2)])
    assert not first.exists()
    assert len(_rows(table)) == 2


class _KilledError(BaseException):
    pass


STEPS = ("mkdir", "rename", "replace", "symlink_to", "hardlink_to", "unlink", "open")


@pytest.mark.parametrize("shape", [WINDOWS, SUMS, EVENTS], ids=lambda shape: shape.merge.name)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_commit_that_is_killed_at_any_step_is_made_up_for_by_the_next(
    shape: Shape, step: str, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path as AnyPath

    first = [_line("2013-03-01", "a", 1), _line("2013-04-01", "b", 2)]
    second = [_line("2013-03-01", "a" if shape is not EVENTS else "c", 5)]
    table = Table(tmp_path, shape)
    table.commit(0, first)
    before = _rows(table)
    calls = 0
    original: Callable[..., Any] = getattr(AnyPath, step)

    def killed_at(self: Path, *args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls > after:
            raise _KilledError
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(AnyPath, step, killed_at)
        try:
            table.commit(1, second)
        except _KilledError:
            killed = True
        else:
            killed = False
    again = Table(tmp_path, shape)
    assert _rows(again) == before or again.version == 1
    assert killed or again.version == 1
    again.commit(1, second)
    expected = {WINDOWS: (5, 2), SUMS: (6, 2), EVENTS: (1, 5, 2)}[shape]
    assert tuple(row[2] for row in _rows(again)) == expected
    assert again.version == 1


def _checkpoint(place: Path, query: str, commits: Iterable[int]) -> Path:
    (place / "commits").mkdir(parents=True)
    (place / "metadata").write_text(json.dumps({"id": query}))
    for number in commits:
        (place / "commits" / str(number)).write_text("")
    return place


def test_a_table_belongs_to_one_checkpoint(tmp_path: Path) -> None:
    table = Table(tmp_path / "table", WINDOWS)
    mine, other = (_checkpoint(tmp_path / name, name, ()) for name in ("mine", "other"))
    StreamTable(table, mine).commit(0, [_line("2013-03-01", "a", 1)])
    StreamTable(table, mine).commit(1, [])
    for stranger in (other, tmp_path / "deleted"):
        with pytest.raises(BadOptionError, match=r"--table: .* was made from another checkpoint"):
            StreamTable(table, stranger)
    with pytest.raises(BadOptionError, match="or by a backfill"):
        BackfillTable(table)


def test_a_table_that_is_gone_is_told(tmp_path: Path) -> None:
    table = Table(tmp_path / "table", WINDOWS)
    with pytest.raises(BadOptionError, match="lacks what the checkpoint has counted already"):
        StreamTable(table, _checkpoint(tmp_path / "mine", "mine", [0, 1]))
    assert table.version == NO_VERSION


def test_backfills_add_versions_to_a_table_of_theirs(tmp_path: Path) -> None:
    table = Table(tmp_path / "table", WINDOWS)
    BackfillTable(table).commit(0, [_line("2013-03-01", "a", 1)])
    BackfillTable(table).commit(0, [_line("2013-03-01", "a", 3), _line("2013-03-01", "b", 4)])
    assert _rows(table) == [("2013-03-01", "a", 3), ("2013-03-01", "b", 4)]
