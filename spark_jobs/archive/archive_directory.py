"""Where an archive lies, who may touch it when, and how files come into it.

    DIRECTORY/
        event_date=2013-03-01/event_hour=05/part-….parquet    records, each in one file
        _archive/
            archive.json      the ledger: topic, columns, offsets taken, files on their way
            staged/…          files of a batch before they are published
            compacted/…       hours before they are exchanged
            *.lock            held by processes, let go by the system when one dies

Names that begin with `_` or `.` are passed over by Spark, Hive, Arrow and Trino: to them the
archive is a directory of Parquet files, partitioned by date and hour.

A batch is published in two steps. Writing the ledger, by renaming a file over it, is the one
moment at which it counts; from then on each of its files is moved to its place, and whoever finds
that a dead process has not moved all of them moves the rest. Before that moment the batch is
nothing but files to be removed.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.locks import locked
from spark_jobs.paths import require_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

INSIDE = "_archive"
LEDGER_VERSION = 1
LOCKS = ("writing", "compacting", "reading", "changing")


@dataclass(frozen=True, slots=True)
class Pending:
    """Files that count and may not be in their places yet."""

    staged: str
    """Directory below `staged`."""

    files: tuple[str, ...]
    """Relative to `staged`, and to the archive."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What an archive knows of itself."""

    topic: str
    columns: Mapping[str, str]
    """Fields of the records, and their types in SQL; columns are added, never changed."""

    taken: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By partition, lowest and highest offset that any batch has brought, rejected ones too."""

    pending: Pending | None = None

    def with_taken(self, ranges: Mapping[int, tuple[int, int]]) -> Ledger:
        """Return it with more offsets taken."""
        taken = dict(self.taken)
        for partition, (first, last) in ranges.items():
            known = taken.get(partition, (first, last))
            taken[partition] = (min(first, known[0]), max(last, known[1]))
        return replace(self, taken=taken)


class ArchiveDirectory:
    """An archive on a file system that the driver, and all executors, reach by the same path."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.staged = self.path / INSIDE / "staged"
        self.compacted = self.path / INSIDE / "compacted"
        self._ledger = self.path / INSIDE / "archive.json"

    def writing(self) -> AbstractContextManager[None]:
        """Hold off others that add batches."""
        return locked(self._lock("writing"))

    def compacting(self) -> AbstractContextManager[None]:
        """Hold off other compactions; raise `JobError` when one is under way."""
        return locked(self._lock("compacting"), seconds=0.0, purpose="for a compaction")

    def reading(self) -> AbstractContextManager[None]:
        """Keep all files where they are; batches may be added meanwhile."""
        return locked(self._lock("reading"), shared=True)

    def replacing(self, seconds: float) -> AbstractContextManager[None]:
        """Wait until nobody reads; raise `JobError` when somebody still does after `seconds`."""
        return locked(self._lock("reading"), seconds=seconds, purpose="until readers let go of it")

    def changing(self) -> AbstractContextManager[None]:
        """Hold off others that move files, and those that list them; for moments only."""
        return locked(self._lock("changing"))

    def _lock(self, name: str) -> Path:
        return self.path / INSIDE / f"{name}.lock"

    def ledger(self) -> Ledger:
        """Return the ledger; raise `BadOptionError` when there is none or it is damaged."""
        try:
            found = json.loads(self._ledger.read_text(encoding="utf-8"))
            version = found.pop("version")
            if version != LEDGER_VERSION:
                raise BadOptionError(f"--directory: {self._ledger} is of version {version}")
            taken = {int(p): (first, last) for p, (first, last) in found.pop("taken").items()}
            pending = found.pop("pending")
            if pending is not None:
                pending = Pending(pending["staged"], tuple(pending["files"]))
            return Ledger(**found, taken=taken, pending=pending)
        except OSError as error:
            raise BadOptionError(
                f"--directory: {self.path} is no archive: {self._ledger.name} in {INSIDE} cannot "
                f"be read ({(error.strerror or str(error)).lower()})"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise BadOptionError(f"--directory: {self._ledger} is damaged: {error}") from error

    def open_for(self, topic: str, columns: Mapping[str, str]) -> Ledger:
        """Make the archive, or add columns it lacks; return its ledger.

        Raises `BadOptionError` when it is another topic's, or holds a column with another type.
        """
        require_directory("--directory", self.path)
        require_directory("--directory", self.path / INSIDE)
        for name in LOCKS:  # for readers that may not make them
            self._lock(name).touch()
        with self.changing():
            known = self.ledger() if self._ledger.exists() else Ledger(topic, {})
            if known.topic != topic:
                raise BadOptionError(
                    f"--directory: {self.path} is an archive of the topic '{known.topic}', "
                    f"and here it is '{topic}': use another directory"
                )
            for name, kind in columns.items():
                if known.columns.get(name, kind) != kind:
                    raise BadOptionError(
                        f"--directory: in {self.path} the column '{name}' is "
                        f"{known.columns[name]}, and the definition makes it {kind}: give the "
                        "field another name, or use another directory"
                    )
            ledger = replace(known, columns={**known.columns, **columns})
            if ledger != known or not self._ledger.exists():
                self._write(ledger)
            return ledger

    def publish(self, ranges: Mapping[int, tuple[int, int]], pending: Pending) -> None:
        """Let a batch count, by its offsets and files, and move the files in place.

        For the holder of `writing`, after `finish_publishing`.
        """
        with self.changing():
            self._write(replace(self.ledger().with_taken(ranges), pending=pending))
            self._finish()

    def finish_publishing(self) -> None:
        """Move files in place that count already; a process may have died on the way."""
        with self.changing():
            self._finish()

    def _finish(self) -> None:
        ledger = self.ledger()
        if ledger.pending is None:
            return
        staged = self.staged / ledger.pending.staged
        for name in ledger.pending.files:
            source, target = staged / name, self.path / name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
        self._write(replace(ledger, pending=None))
        shutil.rmtree(staged, ignore_errors=True)

    def _write(self, ledger: Ledger) -> None:
        """Put a ledger in the place of the one before, in one step."""
        unfinished = self._ledger.with_suffix(".new")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump({"version": LEDGER_VERSION, **asdict(ledger)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._ledger)

    def sweep(self, directory: Path) -> None:
        """Remove what dead processes left in `staged` or `compacted`, under the lock for it."""
        directory.mkdir(exist_ok=True)
        for left in directory.iterdir():
            shutil.rmtree(left, ignore_errors=True)

    def dates(self) -> list[Path]:
        """Return the directories of dates, in order of time."""
        return sorted(self.path.glob("event_date=*"))

    def hours(self) -> Iterator[Path]:
        """Yield the directories of hours, in order of time."""
        yield from sorted(self.path.glob("event_date=*/event_hour=*"))


def files_of(hour: Path) -> list[Path]:
    """Return the Parquet files of an hour's directory."""
    return sorted(hour.glob("[!._]*.parquet"))


def require_archive(directory: ArchiveDirectory) -> Ledger:
    """Return the ledger of an archive after what a dead process left undone is done."""
    ledger = directory.ledger()
    try:
        directory.finish_publishing()
    except PermissionError as error:  # a reader that may not write sees what is in place
        if ledger.pending is not None:
            raise JobError(
                f"{directory.path}: {error.strerror}, and a batch waits in it"
            ) from error
    return directory.ledger()
