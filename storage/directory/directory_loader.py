"""Load all logs of one log directory at start-up."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from storage.directory import closed_logs
from storage.directory.checkpoints import read_offsets
from storage.directory.clean_shutdown import mark_clean
from storage.directory.known_log import open_known
from storage.errors import (
    DamagedFileError,
    DirectoryRefusedError,
    ExhaustedError,
    LogDirectoryError,
)
from storage.log.log_loader import LoadHints, load_log
from storage.log.log_offsets import NEVER_CLEANED
from storage.log.log_rules import has_delays
from storage.log.log_settings import LogPlace, LogSettings
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from config.topic import TopicConfig
    from storage.directory.log_directory import LogDirectory
    from storage.filesystem import Stamp
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)
UNIQUE_PART = slice(-32 - len(file_names.DELETED_DIRECTORY), -len(file_names.DELETED_DIRECTORY))
"""Of the path of a deleted partition."""
Offsets = dict[tuple[str, int], int]


@dataclass(slots=True)
class LoadReport:
    """Findings of start-up, over all directories."""

    logs: int = 0
    unclean_directories: list[str] = field(default_factory=list)
    """Directories whose last broker did not stop cleanly, so that their logs were recovered."""
    bytes_read: int = 0
    """By recovery."""
    bytes_cut: int = 0
    """From the ends of files."""
    bytes_removed: int = 0
    """In whole segments, behind the truncation."""
    notes: list[str] = field(default_factory=list)
    """One line for each thing that was not as it should be; they were logged too."""

    def note(self, line: str, level: int = logging.WARNING) -> None:
        """Log a line and keep it."""
        self.notes.append(line)
        LOGGER.log(level, "%s", line)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Load options common to all directories."""

    settings: LogSettings
    config_of: Callable[[str], TopicConfig]
    """Configuration of a topic by name."""
    progress: Callable[[int, int, str], None]
    """Called with how many logs of the directory are loaded, how many there are, and the next."""


@dataclass(slots=True)
class DirectoryContents:
    """Contents of log directories."""

    logs: list[Log] = field(default_factory=list)
    copies: list[Log] = field(default_factory=list)
    """Replicas that were moving here from another directory."""
    deleted: list[str] = field(default_factory=list)
    """Paths of deleted partitions that wait for removal."""
    missing: dict[tuple[str, int], str] = field(default_factory=dict)
    """Partitions that had records when a checkpoint was written and have no directory there."""
    has_stale_checkpoints: bool = False
    """True if a checkpoint names a missing log: it must not apply to a later log of that name."""


def load_all(
    directories: Iterable[LogDirectory], plan: LoadPlan, report: LoadReport
) -> DirectoryContents:
    """Load all directories; one that fails is noted, and the others go on.

    Raises DirectoryRefusedError and ExhaustedError.
    """
    contents = DirectoryContents()
    clean: list[LogDirectory] = []
    for directory in directories:
        try:
            found = load_directory(directory, plan, report, clean)
        except ExhaustedError:
            raise
        except DirectoryRefusedError:
            for one in clean:  # as found: a further start must not take it for a crash
                mark_clean(one)
            raise
        except LogDirectoryError as error:
            report.note(error.message)
            continue
        contents.logs += found.logs
        contents.copies += found.copies
        contents.deleted += found.deleted
        contents.missing.update(found.missing)
        contents.has_stale_checkpoints |= found.has_stale_checkpoints
    there = {(log.topic, log.partition) for log in (*contents.logs, *contents.copies)}
    for key, line in contents.missing.items():
        if key not in there:  # nor was it taken to another directory
            report.note(line, logging.ERROR)
    return contents


def load_directory(
    directory: LogDirectory, plan: LoadPlan, report: LoadReport, clean: list[LogDirectory]
) -> DirectoryContents:
    """Load every log; findings go into `report`, and a cleanly closed directory into `clean`.

    The mark of a clean shutdown is removed first, so that a crash from here on is detected. An
    OSError becomes LogDirectoryError, as everywhere.
    """
    contents = DirectoryContents()
    with directory:
        was_clean, closed = closed_logs.take(directory)
        if was_clean:
            clean.append(directory)
        hints = _Hints(directory, report, was_clean=was_clean)
        names = _sort_names(directory, contents, report)
        for done, found in enumerate(names):
            plan.progress(done, len(names), found.name)
            place = LogPlace(directory, found.topic, found.partition, None, found.future_id)
            known = closed.get(found.name, found.stamp)
            config = plan.config_of(found.topic)
            log_hints = hints.of(found.topic, found.partition)
            are_known = closed.knows_delays(found.name, found.stamp)
            log = None
            if known is not None and (are_known or not has_delays(config)):
                with suppress(DamagedFileError):  # the loader finds and reports it
                    log = open_known(place, known, config, plan.settings, log_hints)
            if log is None:
                if was_clean and not are_known:
                    log_hints = replace(log_hints, are_delays_known=False)
                log = _look_and_load(place, config, plan.settings, log_hints, report)
            (contents.copies if found.future_id else contents.logs).append(log)
        plan.progress(len(names), len(names), "")
        there = {(found.topic, found.partition) for found in names}
        contents.has_stale_checkpoints = not hints.keys <= there
        contents.missing = hints.missing(there, contents.deleted)
    report.logs += len(contents.logs)
    return contents


def _look_and_load(
    place: LogPlace,
    config: TopicConfig,
    settings: LogSettings,
    hints: LoadHints,
    report: LoadReport,
) -> Log:
    try:
        log, outcome = load_log(place, config, settings, hints)
    except DirectoryRefusedError as error:
        raise DirectoryRefusedError(f"{place.path}: {error}") from error
    except DamagedFileError as error:
        raise DirectoryRefusedError(f"{error.message}; {_way_out(place, hints)}") from error
    report.bytes_read += outcome.bytes_read
    report.bytes_cut += outcome.bytes_cut
    report.bytes_removed += outcome.bytes_removed
    report.notes += outcome.notes
    return log


def _way_out(place: LogPlace, hints: LoadHints) -> str:
    """Advice to an operator with a damaged log."""
    restored = f"restore the file, or move {place.path} away to go on without the partition"
    if not hints.was_clean:
        return restored
    mark = f"{place.directory.path}/{file_names.CLEAN_SHUTDOWN}"
    return f"{restored}, or remove {mark} to go on with what stands before"


class _Found(NamedTuple):
    """The directory of a partition."""

    name: str
    topic: str
    partition: int
    stamp: Stamp
    future_id: str = ""


class _Hints:
    """The checkpoint files of a directory."""

    def __init__(self, directory: LogDirectory, report: LoadReport, *, was_clean: bool) -> None:
        self.was_clean = was_clean
        self.recovery_points = self._read(directory, file_names.RECOVERY_POINTS, report)
        self.log_starts = self._read(directory, file_names.LOG_STARTS, report)
        self.high_watermarks = self._read(directory, file_names.HIGH_WATERMARKS, report)
        self.cleaner_offsets = self._read(directory, file_names.CLEANER_OFFSETS, report)
        self.keys = (
            self.recovery_points.keys()
            | self.log_starts.keys()
            | self.high_watermarks.keys()
            | self.cleaner_offsets.keys()
        )
        """Logs named by any of the checkpoints."""
        self.path = directory.path
        if not self.was_clean:
            report.unclean_directories.append(directory.path)

    def of(self, topic: str, partition: int) -> LoadHints:
        key = topic, partition
        return LoadHints(
            self.was_clean,
            self.recovery_points.get(key, 0),
            self.log_starts.get(key, 0),
            self.high_watermarks.get(key, 0),
            self.cleaner_offsets.get(key, NEVER_CLEANED),
        )

    def missing(
        self, there: Collection[tuple[str, int]], deleted: Sequence[str]
    ) -> dict[tuple[str, int], str]:
        """Message for each log that had records and is neither present nor deleted."""
        lines = {}
        for key in self.recovery_points.keys() - there:
            start, end = self.log_starts.get(key, 0), self.recovery_points[key]
            path = f"{self.path}/{file_names.partition_directory(*key)}"
            is_deleted = any(
                one == f"{self.path}/{file_names.deleted_directory(*key, one[UNIQUE_PART])}"
                for one in deleted
            )
            if start < end and not is_deleted:
                lines[key] = (
                    f"{path} is missing, though {file_names.RECOVERY_POINTS} says that it was "
                    f"flushed up to offset {end - 1}; without it the partition begins empty, "
                    "unless a replica has its records"
                )
        return lines

    @staticmethod
    def _read(directory: LogDirectory, name: str, report: LoadReport) -> Offsets:
        path = f"{directory.path}/{name}"
        offsets, problem = read_offsets(directory.disk.filesystem, path)
        if problem:
            report.note(f"{path} is damaged ({problem}); its offsets count as 0")
        return offsets


def _sort_names(
    directory: LogDirectory, contents: DirectoryContents, report: LoadReport
) -> list[_Found]:
    """Directories of partitions by name; those of deleted ones go into `contents`.

    Checkpoints that a crash left half written are removed.
    """
    found = []
    topics: dict[str, str] = {}
    for entry in sorted(directory.disk.filesystem.scan(directory.path)):
        if not entry.is_directory:
            if entry.is_dangling:
                report.note(
                    f"{directory.path}/{entry.name} is a link that leads nowhere: passed by"
                )
            elif file_names.is_half_written(entry.name):
                directory.disk.filesystem.remove(f"{directory.path}/{entry.name}")
            continue
        key = file_names.parse_partition_directory(entry.name)
        future = file_names.parse_future_directory(entry.name)
        if file_names.is_deleted_directory(entry.name):
            contents.deleted.append(f"{directory.path}/{entry.name}")
        elif entry.name == file_names.CLUSTER_METADATA:
            report.note(f"{directory.path}/{entry.name} belongs to a KRaft node: left alone")
        elif key is not None:
            topic = topics.setdefault(key[0], key[0])  # one string for all its partitions
            found.append(_Found(entry.name, topic, key[1], entry.stamp))
        elif future is not None:
            found.append(_Found(entry.name, future[0], future[1], entry.stamp, future[2]))
        elif entry.name.endswith((file_names.FUTURE_DIRECTORY, file_names.STRAY_DIRECTORY)):
            report.note(f"{directory.path}/{entry.name} is left alone")
        else:
            LOGGER.info("%s/%s is no partition's: left alone", directory.path, entry.name)
    return found
