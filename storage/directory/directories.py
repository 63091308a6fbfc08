"""All logs of a broker, spread over its `log.dirs`.

Each directory is locked, belongs to one broker of one cluster (`meta.properties`), and keeps five
checkpoint files about its logs. A disk error takes the one directory offline, which is logged once.

    directories = LogDirectories.open(paths, disk, settings)    locked, identity read
    directories.identify(broker_id, cluster_id, now_ms)         identity checked or written
    report = directories.load(config_of, progress)              every log open, recovered if needed
    ...
    directories.close()                                         the next start has nothing to do

Before `load` has ended nothing is known of the logs; a start that fails so early leaves the
checkpoints, and whether the last stop was a clean one, as it found them.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from typing import TYPE_CHECKING

from protocol.errors import ApiError
from storage.directory import meta_properties, partition_metadata
from storage.directory.clean_shutdown import close_logs, mark
from storage.directory.directory_loader import LoadPlan, LoadReport, load_all
from storage.directory.log_directory import LogDirectory
from storage.directory.meta_properties import MetaProperties
from storage.directory.moves import LogsAndCopies, Moves
from storage.directory.noted_logs import DueFlushes, NotedLogs
from storage.directory.offset_checkpoints import OffsetCheckpoints
from storage.directory.removals import Removals
from storage.errors import (
    DamagedDelaysError,
    DamagedFileError,
    DirectoryRefusedError,
    ExhaustedError,
    LogDirectoryError,
)
from storage.log.log_loader import create_log
from storage.log.log_settings import LogPlace, LogSettings
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from uuid import UUID

    from config.topic import TopicConfig
    from storage.directory.future_replica import FutureReplica
    from storage.disk import Disk
    from storage.filesystem import File
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)


class LogDirectories:
    """Find, create and delete logs; checkpoint, flush and clean up over all of them."""

    def __init__(self, disk: Disk, settings: LogSettings) -> None:
        """Use `open`."""
        self.directories: list[LogDirectory] = []
        self.on_failure: Callable[[LogDirectory], None] | None = None
        """Called when a directory goes offline, on the thread that met the error."""
        self.on_exhaustion: Callable[[ExhaustedError], None] | None = None
        """Called on any thread when a file could not be opened for lack of descriptors."""
        self.identity = MetaProperties()
        """Broker id and cluster id in the directories' `meta.properties`."""
        self._disk = disk
        self.settings = settings
        self._locks: list[File] = []
        self._is_loaded = False
        self._logs: dict[tuple[str, int], Log] = {}
        self._counts: Counter[str] = Counter()
        """Number of logs in each directory."""
        self._wanted_places: dict[tuple[str, int], LogDirectory] = {}
        self._unidentified: list[LogDirectory] = []
        self.revision = 0
        """Changes whenever a log is added or removed."""
        self.noted = NotedLogs()
        self._due_flushes = DueFlushes(disk, self.noted.timed)
        self._checkpoints = OffsetCheckpoints(self.directories)
        self._is_checkpoint_due = False
        self._removals = Removals()
        self.damages: dict[Log, DamagedDelaysError] = {}
        """Logs whose retention waits for the rebuild of a delay index."""
        self.moves = Moves(self._removals)
        """Logs on their way to another directory."""

    @classmethod
    def open(cls, paths: Sequence[str], disk: Disk, settings: LogSettings) -> LogDirectories:
        """Create and lock the directories, and read their `meta.properties`.

        Raises DirectoryRefusedError if another broker uses one, if they contradict each other, or
        if none is usable. If some are usable, the others are offline. Raises ExhaustedError if
        descriptors run out.
        """
        opened = cls(disk, settings)
        for path in paths:
            directory = LogDirectory(path.rstrip("/") or "/", disk)
            opened.directories.append(directory)
            try:
                with directory:
                    opened._lock(directory)
                    opened._read_identity(directory)
            except ExhaustedError:
                raise
            except LogDirectoryError:
                continue  # noted below, if others can be used
        opened._refuse_if_all_offline()
        for directory in opened.directories:
            directory.on_failure = opened._note_failure
            directory.on_exhaustion = opened._note_exhaustion
            directory.on_cut = opened._note_cut
            if directory.failure is not None:
                opened._note_failure(directory)
        return opened

    def identify(self, broker_id: int, cluster_id: str, now_ms: int) -> None:
        """Hold the identity of the broker against the directories', and write it where none is."""
        self.identity.require(broker_id, cluster_id)
        self.identity = MetaProperties(broker_id, cluster_id)
        content = meta_properties.encode(self.identity, now_ms)
        for directory in self._unidentified:
            if directory.failure is None:
                with directory:
                    path = f"{directory.path}/{file_names.META_PROPERTIES}"
                    self._disk.filesystem.replace(path, content, sync=True)
        self._unidentified = []

    def load(
        self,
        config_of: Callable[[str], TopicConfig],
        progress: Callable[[int, int, str], None] = lambda *_: None,
    ) -> LoadReport:
        """Open all logs; after a crash, recover them.

        Raises DirectoryRefusedError for a log that exists twice or is in an obsolete format, and
        ExhaustedError if descriptors run out: the logs themselves are intact then.
        """
        report = LoadReport()
        contents = load_all(self._online(), LoadPlan(self.settings, config_of, progress), report)
        self._removals.add(contents.deleted, 0)
        for log in self.moves.settle(contents, report, is_whole=not self.is_any_offline):
            self._add(log)
        self._refuse_if_all_offline()
        self._is_loaded = True
        if contents.has_stale_checkpoints:
            self.checkpoint_all()
        return report

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._logs.values()))

    def get(self, topic: str, partition: int) -> Log | None:
        """Log of a partition, online or not; None when there is none."""
        return self._logs.get((topic, partition))

    def create(
        self, topic: str, partition: int, topic_id: UUID, config: TopicConfig, now_ms: int = 0
    ) -> Log:
        """Create a log where it is wanted, or in the directory that has the fewest.

        Returns the one there is, if there is one.
        """
        existing = self._logs.get((topic, partition))
        if existing is not None:
            return existing
        wanted = self._wanted_places.get((topic, partition))
        directory = self._emptiest() if wanted is None or wanted.failure else wanted
        place = LogPlace(directory, topic, partition, topic_id)
        log = create_log(place, config, self.settings, now_ms)
        self._wanted_places.pop((topic, partition), None)
        self._add(log)
        return log

    def want(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Have a log that is yet to be created go into this directory."""
        self._wanted_places[topic, partition] = directory

    def forget_wanted(self, topics: Collection[str]) -> None:
        """Forget the wanted directories of deleted topics."""
        for key in [key for key in self._wanted_places if key[0] in topics]:
            del self._wanted_places[key]

    @property
    def is_any_offline(self) -> bool:
        """True if there may be logs that could not be loaded or have become inaccessible."""
        return any(directory.failure is not None for directory in self.directories)

    def configure(self, log: Log, config: TopicConfig) -> None:
        """Apply another configuration of its topic to a log."""
        move = self.moves.get(log.topic, log.partition)
        if log.config is config and move is None:
            return  # unchanged since it was loaded, as for most in LeaderAndIsr
        log.config = config
        if move is not None:
            move.copy.config = config
        self.noted.note(log)

    def assign_topic_id(self, log: Log, topic_id: UUID) -> None:
        """Give an id to a log of before 2.8, which has none."""
        with log.directory:
            partition_metadata.write(self._disk.filesystem, log.path, topic_id)
        log.place.topic_id = topic_id

    def delete(self, topic: str, partition: int, now_ms: int = 0) -> None:
        """Rename its directory now, its files go later; then `checkpoint_all`, before a new one."""
        log = self._logs.get((topic, partition))
        if log is None:
            return
        self.moves.call_off(topic, partition, now_ms)  # first: nothing is left that could be it
        unique = log.topic_id.hex if log.topic_id is not None else f"{now_ms:032x}"
        name = file_names.deleted_directory(topic, partition, unique)
        target = f"{log.directory.path}/{name}"
        if log.directory.failure is None and self._disk.filesystem.exists(target):
            with log.directory:  # left from the same partition that came back and is deleted again
                self._disk.filesystem.remove_tree(target)
        del self._logs[topic, partition]
        self.revision += 1
        self.noted.forget(log)
        directory = log.give_up()
        self._counts[directory.path] -= 1
        assert self._counts[directory.path] >= 0, directory.path
        with directory:
            self._disk.filesystem.rename(log.path, target)
        self._removals.add([target], now_ms + log.config.file_delete_delay_ms)

    def move(self, log: Log, directory: LogDirectory, now_ms: int) -> None:
        """Have a log move to another directory, or stay. Raises ApiError and LogDirectoryError."""
        self.moves.begin(log, directory, self.settings, now_ms)

    def end_move(self, move: FutureReplica) -> str:
        """As `FutureReplica.take_place`; `settle` it, then `remove_later` the returned path."""
        log, source = move.log, move.log.directory
        old_path = move.take_place()
        self.moves.forget(log.topic, log.partition)
        self._counts[source.path] -= 1
        self._counts[log.directory.path] += 1
        self.revision += 1
        return old_path

    def delete_expired(self, now_ms: int) -> Iterator[int]:
        """Apply retention, to one log at each step; how many of its files will go is yielded."""
        for log in self:
            is_deleted = self._logs.get((log.topic, log.partition)) is not log
            if is_deleted or log.is_being_cleaned or log.directory.failure is not None:
                continue
            try:
                paths = log.delete_expired(now_ms)
            except DamagedDelaysError as error:
                self.damages[log] = error
                continue
            except ApiError as error:
                LOGGER.warning("retention skipped %s: %s", log.name, error.message)
                continue
            except Exception:  # else no log after this one would ever be shortened again
                LOGGER.exception("retention skipped %s", log.name)
                continue
            self.remove_later(log, paths, now_ms)
            yield len(paths)

    def remove_later(self, log: Log, paths: Sequence[str], now_ms: int) -> None:
        """Have files of `log` that were set aside removed, `file.delete.delay.ms` from now."""
        due_ms = now_ms + log.config.file_delete_delay_ms
        self._removals.add(paths, due_ms)

    def take_removals(self, now_ms: int) -> list[str]:
        """Return what `remove` may be called with by now, on any thread; each path once."""
        return self._removals.take(now_ms)

    def remove(self, path: str) -> None:
        """Remove the files of something deleted; safe to call from another thread."""
        directory = next(one for one in self.directories if path.startswith(one.path + "/"))
        try:
            with directory:
                if path.endswith(file_names.DELETED_DIRECTORY):
                    self._disk.filesystem.remove_tree(path)
                else:
                    self._disk.filesystem.remove(path)
        except ExhaustedError:
            self._removals.add([path], 0)
            raise

    def flush_due(self, now_ms: int) -> list[Callable[[], None]]:
        """Return the flushes due by `flush.ms`, to be called on any thread."""
        return self._due_flushes.take(self, now_ms)

    def expire_producers(self, now_ms: int) -> Iterator[int]:
        """Forget idle producers in all logs, some of one log at each step; yields how many."""
        for log in self:
            yield from log.producers.expire(now_ms, self.settings.producer_id_expiration_ms)

    def checkpoint_recovery_points(self) -> frozenset[LogDirectory]:
        """Checkpoint the recovery points, from any thread; return where that succeeded."""
        return self._checkpoints.write(file_names.RECOVERY_POINTS, LogsAndCopies(self, self.moves))

    def checkpoint_all(self) -> None:
        """Write all offsets that have changed, and none of deleted logs; safe from any thread."""
        self._checkpoints.write_all(LogsAndCopies(self, self.moves), is_last=False)

    def checkpoint_high_watermarks(self) -> frozenset[LogDirectory]:
        """Write the high watermarks; safe to call from another thread."""
        return self._checkpoints.write(file_names.HIGH_WATERMARKS, LogsAndCopies(self, self.moves))

    def checkpoint_log_starts(self) -> frozenset[LogDirectory]:
        """Write the log start offsets that are not those of a segment; safe from any thread."""
        return self._checkpoints.write(file_names.LOG_STARTS, LogsAndCopies(self, self.moves))

    def checkpoint_cleaner_offsets(self) -> frozenset[LogDirectory]:
        """Write up to where each compacted log is clean; safe to call from another thread."""
        return self._checkpoints.write(file_names.CLEANER_OFFSETS, LogsAndCopies(self, self.moves))

    def close(self) -> None:
        """Close all logs, write the checkpoints, leave the mark of a clean shutdown, unlock."""
        if self._is_loaded:
            self._close_loaded()
        self._logs.clear()
        self._locks.clear()

    def _close_loaded(self) -> None:
        everything = list(LogsAndCopies(self, self.moves))
        in_order = frozenset(self.directories) - close_logs(everything, self._disk.filesystem)
        in_order &= self._checkpoints.write_all(LogsAndCopies(self, self.moves), is_last=True)
        marked = [one for one in self.directories if one in in_order]
        mark(marked, list(self))

    def _lock(self, directory: LogDirectory) -> None:
        try:
            self._disk.filesystem.make_directory(directory.path)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory") from None
        lock = self._disk.filesystem.lock(f"{directory.path}/{file_names.LOCK}")
        if lock is None:
            raise DirectoryRefusedError(
                f"another broker is using the log directory {directory.path} (it holds the lock on "
                f"{file_names.LOCK}); stop it, or give this one other log.dirs"
            )
        self._locks.append(lock)

    def _read_identity(self, directory: LogDirectory) -> None:
        path = f"{directory.path}/{file_names.META_PROPERTIES}"
        if not self._disk.filesystem.exists(path):
            self._unidentified.append(directory)
            return
        try:
            found = meta_properties.decode(self._disk.filesystem.read(path))
        except DamagedFileError as error:
            way_out = "restore it, or remove it to have it made anew"
            raise DirectoryRefusedError(f"{path} is damaged: {error.message}; {way_out}") from error
        self.identity = self.identity.joined(found, path)

    def _add(self, log: Log) -> None:
        key = log.topic, log.partition
        existing = self._logs.setdefault(key, log)
        self._counts[log.directory.path] += 1
        if existing is not log:
            raise DirectoryRefusedError(f"{existing.path} and {log.path} are the same partition")
        self.revision += 1
        self.noted.note(log)

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failure is None]

    def _emptiest(self) -> LogDirectory:
        online = self._online()
        if not online:
            failure = self.directories[0].failure
            if failure is not None:
                raise failure.with_traceback(None)
            raise LogDirectoryError(self.directories[0].path, "is offline")
        return min(online, key=lambda directory: self._counts[directory.path])

    def _refuse_if_all_offline(self) -> None:
        if not self._online():
            reasons = "; ".join(str(one.failure.message) for one in self.directories if one.failure)
            raise DirectoryRefusedError(f"no log directory can be used: {reasons}")

    def _note_failure(self, directory: LogDirectory) -> None:
        if directory.failure is not None:
            LOGGER.error("%s; the log directory is offline now", directory.failure.message)
        if self.on_failure is not None:
            self.on_failure(directory)

    def _note_cut(self) -> None:
        """Have recovery points written at once: older ones say that what follows was flushed."""
        if not self._is_checkpoint_due:
            self._is_checkpoint_due = True
            self.settings.run_later(self._write_recovery_points)

    def _write_recovery_points(self) -> None:
        self._is_checkpoint_due = False  # first: the file may lack a truncation from now on
        self.checkpoint_recovery_points()

    def _note_exhaustion(self, error: ExhaustedError) -> None:
        if self.on_exhaustion is not None:
            self.on_exhaustion(error)
