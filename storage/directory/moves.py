"""Moves of replicas between the log directories of one broker: started, cancelled, resumed.

The copy, and how it takes the log's place, is in `future_replica`; the task that does it is
`broker.maintenance.log_mover`.
"""

from __future__ import annotations

import logging
from itertools import chain
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from storage.directory.future_replica import FutureReplica, check_delays, go_on_at, is_marked
from storage.log.log_loader import create_log
from storage.log.log_settings import LogPlace
from storage.segment import file_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.directory.directory_loader import DirectoryContents, LoadReport
    from storage.directory.log_directory import LogDirectory
    from storage.directory.offset_checkpoints import Logs
    from storage.directory.removals import Removals
    from storage.log.log import Log
    from storage.log.log_settings import LogSettings

LOGGER = logging.getLogger(__name__)

UNIQUE = 1 << 128


class Moves:
    """At most one for each partition."""

    def __init__(self, removals: Removals) -> None:
        self._removals = removals
        self._moving: dict[tuple[str, int], FutureReplica] = {}
        self.revision = 0
        """Changes whenever a copy is added or removed."""
        self.on_begin: Callable[[], None] = _nothing
        """Called when there is something to move."""

    def __len__(self) -> int:
        return len(self._moving)

    def __iter__(self) -> Iterator[FutureReplica]:
        return iter(list(self._moving.values()))

    @property
    def copies(self) -> list[Log]:
        """Of all logs that are moving."""
        return [one.copy for one in self._moving.values()]

    def get(self, topic: str, partition: int) -> FutureReplica | None:
        """The move of a partition, if it moves."""
        return self._moving.get((topic, partition))

    def begin(self, log: Log, directory: LogDirectory, settings: LogSettings, now_ms: int) -> None:
        """Have `log` move to `directory`; to where it is, to call off any move.

        Raises ApiError for a log that cannot move, and LogDirectoryError.
        """
        current = self.get(log.topic, log.partition)
        if current is not None and current.copy.directory is directory:
            return
        if log.directory is not directory:
            _check(log)
        if current is not None:
            self.call_off(log.topic, log.partition, now_ms)
        if log.directory is directory:
            return
        unique = f"{settings.draw_below(UNIQUE):032x}"
        place = LogPlace(directory, log.topic, log.partition, log.topic_id, unique)
        copy = create_log(place, log.config, settings, now_ms)
        copy.truncate_fully_and_start_at(log.log_start_offset)
        self._add(FutureReplica(log, copy))
        LOGGER.info("moving %s from %s to %s", log.name, log.directory.path, directory.path)
        self.on_begin()

    def call_off(self, topic: str, partition: int, now_ms: int) -> None:
        """Give up the copy, if there is one. Raises LogDirectoryError."""
        move = self.forget(topic, partition)
        if move is not None:
            _set_aside(move.copy, self._removals, now_ms)

    def forget(self, topic: str, partition: int) -> FutureReplica | None:
        """Go on without the copy, and leave its files as they are."""
        move = self._moving.pop((topic, partition), None)
        if move is not None:
            self.revision += 1
            move.copy.release()
        return move

    def settle(
        self, contents: DirectoryContents, report: LoadReport, *, is_whole: bool
    ) -> list[Log]:
        """Go on with what an earlier process has begun; returns the logs.

        `is_whole` says that all directories could be read, so a log that is not there is nowhere.
        Raises LogDirectoryError.
        """
        logs: dict[tuple[str, int], Log] = {}
        rest = []
        for log in contents.logs:
            key = log.topic, log.partition
            other = logs.get(key)
            older = None if other is None else _older_of(other, log)
            if other is None or older is other:
                logs[key] = log
            elif older is None:
                rest.append(log)  # who adds it to the others finds that it is there twice
            if older is not None:
                _set_aside(older, self._removals, 0)
        for copy in contents.copies:
            key = copy.topic, copy.partition
            if key not in logs and is_whole and is_marked(copy):
                take_name(copy)
                logs[key] = copy
            else:
                self._resume(copy, logs.get(key), report)
        return [*logs.values(), *rest]

    def _resume(self, copy: Log, log: Log | None, report: LoadReport) -> None:
        if log is None:
            report.note(f"{copy.path} is left alone: the replica that was moved is not here")
        elif log.directory is copy.directory or self.get(log.topic, log.partition) is not None:
            report.note(f"{copy.path} is left alone: there is another one")
        elif copy.topic_id not in (None, log.topic_id):
            report.note(f"{copy.path} is removed: its topic is gone")
            _set_aside(copy, self._removals, 0)
        else:
            self._add(FutureReplica(log, copy))
            LOGGER.info("moving %s to %s goes on", log.name, copy.directory.path)

    def _add(self, move: FutureReplica) -> None:
        self._moving[move.log.topic, move.log.partition] = move
        self.revision += 1


class LogsAndCopies:
    """All logs of a broker with the copies of those that move, for the checkpoints."""

    def __init__(self, logs: Logs, moves: Moves) -> None:
        self._logs = logs
        self._moves = moves

    @property
    def revision(self) -> int:
        """Changes whenever a log or a copy is added or removed."""
        return self._logs.revision + self._moves.revision

    def __iter__(self) -> Iterator[Log]:
        return chain(self._logs, self._moves.copies)


def take_name(copy: Log) -> None:
    """The copy is the log: the process has ended between the two renamings."""
    path = f"{copy.directory.path}/{copy.name}"
    with copy.directory:
        copy.directory.disk.filesystem.rename(copy.path, path)
        go_on_at(copy, copy, path)


def _older_of(one: Log, other: Log) -> Log | None:
    """The older of two logs of a partition, the one moved from; None if that is ambiguous."""
    marked = [log for log in (one, other) if is_marked(log)]
    if len(marked) != 1:
        return None
    return other if marked[0] is one else one


def _set_aside(log: Log, removals: Removals, now_ms: int) -> None:
    unique = log.place.future_id or (log.topic_id.hex if log.topic_id else f"{0:032x}")
    name = file_names.deleted_directory(log.topic, log.partition, unique)
    path, due_ms = log.path, now_ms + log.config.file_delete_delay_ms
    directory = log.give_up()
    if directory.failure is not None:
        return
    filesystem, target = directory.disk.filesystem, f"{directory.path}/{name}"
    with directory:
        if filesystem.exists(target):
            filesystem.remove_tree(target)
        filesystem.rename(path, target)
    removals.add([target], due_ms)


def _nothing() -> None:
    """Default without a listener."""


def _check(log: Log) -> None:
    check_delays(log)
    longest = file_names.future_directory(log.topic, log.partition, f"{0:032x}")
    if len(longest) > file_names.MAX_DIRECTORY_NAME:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{log.name} is too long a name for a replica that moves",
        )
