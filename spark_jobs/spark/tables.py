"""A table that a stream keeps up to date, as files whose latest complete version is always there.

    DIRECTORY/
        latest -> version-000000041     replaced in one step: who opens it sees all of one version
        version-000000041/
            2013-02.jsonl               a JSON object per line; a file per period of the rows,
            2013-03.jsonl               hard-linked from version to version until a row changes
        table.json                      whose table it is

A version is a batch, and has its number. A batch that comes again, because its commit was lost
when a process was killed, finds its version there and changes nothing; one whose version is
incomplete is written anew. So the table holds each batch exactly once, added-up numbers too.
Files are on the disk before `latest` names them. Earlier versions stay for a minute, for who has
begun to read.

    pd.concat(pd.read_json(path, lines=True) for path in sorted(Path("latest").glob("*.jsonl")))

The driver writes it, so it needs a directory of the driver's, on a file system with links, and no
executor has to reach it. Rows of the periods that a batch changes pass through its memory.
"""

from __future__ import annotations

import enum
import json
import os
import shutil
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.errors import BadOptionError
from spark_jobs.paths import require_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LATEST = "latest"
PREFIX = "version-"
OWNER_FILE = "table.json"
CHANGED_FILE = ".changed"
UNFINISHED = ".unfinished"
NO_VERSION = -1
KEEP_SECONDS = 60.0
MOST_BUFFERED_ROWS = 50_000
MOST_SMALL_FILES = 16
SMALL_BYTES = 4 << 20

Row = dict[str, Any]


class Merge(enum.Enum):
    """What becomes of a row whose key is there already."""

    REPLACE = "the new row takes its place"
    ADD = "its numbers are added up"
    APPEND = "no key comes twice, so that nothing of old rows is read"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a table's rows are."""

    key: tuple[str, ...]
    """Fields that tell rows apart."""

    period: str
    """The field, an instant as text, that says which file a row is in."""

    merge: Merge = Merge.REPLACE
    sums: tuple[str, ...] = ()
    """Fields to add up."""

    period_characters: int = len("2013-03")
    """How much of the instant is the file's name: a month, or with more of it a day."""

    def key_of(self, row: Row) -> str:
        """Return the row's key as text."""
        return json.dumps([row[name] for name in self.key])

    def period_of(self, row: Row) -> str:
        """Return the name of the row's file."""
        return str(row[self.period])[: self.period_characters]


class Table:
    """One table, with one writer."""

    def __init__(self, directory: Path, shape: Shape) -> None:
        self.directory = directory.absolute()
        self.shape = shape

    @property
    def version(self) -> int:
        """The latest complete version, or `NO_VERSION`."""
        try:
            target = os.readlink(self.directory / LATEST)  # noqa: PTH115 - as text, not resolved
        except FileNotFoundError:
            return NO_VERSION
        return int(target.removeprefix(PREFIX))

    def rows(self, period: str | None = None) -> Iterator[Row]:
        """Yield the rows of the latest version, or those of a file in it."""
        for path in self._files(period):
            with path.open(encoding="utf-8") as file:
                yield from map(json.loads, file)

    def changed(self) -> list[Row]:
        """Return the rows that the latest version changed, as they are now."""
        with (self.directory / LATEST / CHANGED_FILE).open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def commit(self, version: int, lines: Iterable[str]) -> None:
        """Merge rows, each as JSON, into the table as this version, unless it is there already."""
        if version <= self.version:
            return
        unfinished = self.directory / UNFINISHED
        _remove(unfinished)
        unfinished.mkdir(parents=True)
        if self.shape.merge is Merge.APPEND:
            self._append(unfinished, version, lines)
        else:
            self._merge(unfinished, lines)
        self._publish(unfinished, version)

    def claim(self, owner: str) -> None:
        """Note whose table it is, before its first version."""
        require_directory("--table", self.directory)
        unfinished = self.directory / f".{OWNER_FILE}"
        _write(unfinished, [json.dumps({"owner": owner})])
        unfinished.replace(self.directory / OWNER_FILE)

    def require_owner(self, owner: str | None, *, has_begun: bool) -> None:
        """Raise `BadOptionError` if the table is another's, or not what `owner` made of it.

        `owner` is None for one that is to be given an id yet; `has_begun` says that it has
        finished a batch.
        """
        require_directory("--table", self.directory)
        if self.version != NO_VERSION and self._owner() != owner:
            raise BadOptionError(
                f"--table: {self.directory} was made from another checkpoint, or by a backfill: "
                "name another directory, or delete it"
            )
        if self.version == NO_VERSION and has_begun:
            raise BadOptionError(
                f"--table: {self.directory} lacks what the checkpoint has counted already: name "
                "the directory used before, or another --checkpoint"
            )

    def _owner(self) -> str | None:
        path = self.directory / OWNER_FILE
        try:
            found: str | None = json.loads(path.read_text(encoding="utf-8")).get("owner")
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError) as error:
            raise BadOptionError(f"--table: {path} is damaged: {error}") from error
        return found

    def _files(self, period: str | None = None) -> list[Path]:
        stem = "*" if period is None else f"{period}*"
        return sorted((self.directory / LATEST).glob(f"{stem}.jsonl"))

    def _merge(self, place: Path, lines: Iterable[str]) -> None:
        by_period: dict[str, list[Row]] = defaultdict(list)
        for line in lines:
            row = json.loads(line)
            by_period[self.shape.period_of(row)].append(row)
        changed: dict[str, Row] = {}
        for period, new in by_period.items():
            rows = {self.shape.key_of(row): row for row in self.rows(period)}
            for row in new:
                key = self.shape.key_of(row)
                rows[key] = changed[key] = self._merged(rows.get(key), row)
            _write(place / f"{period}.jsonl", (_line(rows[key]) for key in sorted(rows)))
        _write(place / CHANGED_FILE, (_line(row) for row in changed.values()))

    def _merged(self, old: Row | None, new: Row) -> Row:
        if old is None or self.shape.merge is Merge.REPLACE:
            return new
        return new | {name: old[name] + new[name] for name in self.shape.sums}

    def _append(self, place: Path, version: int, lines: Iterable[str]) -> None:
        waiting: dict[str, list[str]] = defaultdict(list)
        buffered = 0
        for line in lines:
            waiting[self.shape.period_of(json.loads(line))].append(line)
            buffered += 1
            if buffered >= MOST_BUFFERED_ROWS:
                _flush(place, version, waiting)
                buffered = 0
        _flush(place, version, waiting)

    def _publish(self, unfinished: Path, version: int) -> None:
        """Link what did not change, and let `latest` name the version."""
        new = {path.name for path in unfinished.iterdir()}
        for path in self._files():
            if path.name not in new:
                (unfinished / path.name).hardlink_to(path)
        if self.shape.merge is Merge.APPEND:
            _compact(unfinished, self.shape.period_characters, version)
        _sync(unfinished)
        complete = self.directory / f"{PREFIX}{version:09d}"
        _remove(complete)  # of a process that was killed before the next step
        unfinished.rename(complete)
        link = self.directory / f".{LATEST}"
        link.unlink(missing_ok=True)
        link.symlink_to(complete.name)
        link.replace(self.directory / LATEST)
        _sync(self.directory)
        self._forget_before(complete)

    def _forget_before(self, latest: Path) -> None:
        now = latest.stat().st_mtime
        for path in self.directory.glob(f"{PREFIX}*"):
            if path != latest and now - path.stat().st_mtime > KEEP_SECONDS:
                _remove(path)


def _flush(place: Path, version: int, waiting: dict[str, list[str]]) -> None:
    for period, lines in waiting.items():
        _write(place / f"{period}-{version:09d}.jsonl", lines, mode="a")
    waiting.clear()


def _compact(place: Path, period_characters: int, version: int) -> None:
    """Make one file of a period's small ones when they are many; all of its rows stay."""
    small: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(place.glob("*.jsonl")):
        if path.stat().st_size < SMALL_BYTES:
            small[path.name[:period_characters]].append(path)
    for period, paths in small.items():
        if len(paths) < MOST_SMALL_FILES:
            continue
        whole = place / f".{period}"
        with whole.open("wb") as file:
            for path in paths:
                file.write(path.read_bytes())
                path.unlink()
            file.flush()
            os.fsync(file.fileno())
        whole.rename(place / f"{period}-{version:09d}-compacted.jsonl")


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _write(path: Path, lines: Iterable[str], mode: str = "w") -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
