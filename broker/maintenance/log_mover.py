"""Moving replicas to other log directories of this broker (KIP-113), a piece of each in turn.

Moves requested by AlterReplicaLogDirs, or found at the start, are copied within
`replica.alter.log.dirs.io.max.bytes.per.second`. A copy that has caught up takes the log's place;
if the log is being compacted, the copy waits for that. Reads and flushes run on threads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from broker.partitions.throttle import SECOND_MS, Rate, Span
from protocol.errors import ApiError
from storage.errors import ExhaustedError, LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.runtime.event_loop import BackgroundLoop
    from config.broker import BrokerConfig
    from storage.directory.directories import LogDirectories
    from storage.directory.future_replica import FutureReplica

T = TypeVar("T")

logger = logging.getLogger(__name__)

REST_MS: Final = 100
"""Pause when no move can go on: because of the throttle, a compaction, a lack of descriptors.
Fixed: moves take minutes.
"""

HOLD_MS: Final = 1000
"""Longest time that producers which wait for the disk (`flush.messages`) wait for that of a copy.
If it takes longer, they go on, and the copy tries again: their disk may be faster than the other.
"""


class LogMover:
    """Run `run` in a task."""

    def __init__(
        self, config: BrokerConfig, logs: LogDirectories, loop: BackgroundLoop, executor: Executor
    ) -> None:
        self._logs = logs
        self._clock, self._timers = loop.clock, loop.timers
        self._note = loop.note
        self._executor = executor
        self._has_work = asyncio.Event()
        self._rate = Rate(
            Span(
                config.alter_log_dirs_replication_quota_window_num,
                config.alter_log_dirs_replication_quota_window_size_seconds * SECOND_MS,
            ),
            loop.clock.monotonic_ms,
        )
        self.reconfigure(config)
        self.moved = 0
        """Replicas so far."""
        logs.moves.on_begin = self._has_work.set

    def reconfigure(self, config: BrokerConfig) -> None:
        """Go on by this configuration."""
        self._rate.bytes_per_second = config.replica_alter_log_dirs_io_max_bytes_per_second

    async def run(self) -> None:
        """Move whatever there is to move, until cancelled."""
        while True:
            self._has_work.clear()
            went_on = False
            for move in self._logs.moves:
                went_on |= await self._attempt(move)
            if not len(self._logs.moves):
                await self._has_work.wait()
            elif not went_on:
                await self._timers.sleep(REST_MS)

    async def _attempt(self, move: FutureReplica) -> bool:
        """Go on with one move; returns whether that was possible. No error ends the others."""
        name = move.log.name
        try:
            return self._is_wanted(move) and await self._go_on(move)
        except ExhaustedError:
            return False  # later
        except LogDirectoryError:  # logged when it failed; the next start inspects the files
            if move.copy.directory.failure is not None or move.log.directory.failure is not None:
                self._forget(move)
            return False
        except ApiError as error:
            logger.error("moving %s abandoned: %s", name, error.message)  # noqa: TRY400
            self._abandon(move)
            return False
        except Exception as error:  # noqa: BLE001 - noted
            self._note(f"moving {name}", error, "moves of replicas")
            self._abandon(move)
            return False

    async def _go_on(self, move: FutureReplica) -> bool:
        move.align()
        if move.lag:
            return await self._copy(move)
        return await self._finish(move)

    async def _copy(self, move: FutureReplica) -> bool:
        if self._rate.is_exceeded:
            return False
        piece = move.next_piece()
        truncations = move.log.offsets.truncations, move.copy.offsets.truncations
        records = await self._on_thread(piece.tobytes)
        if not self._is_wanted(move):
            return False
        if truncations != (move.log.offsets.truncations, move.copy.offsets.truncations):
            return True
        self._rate.record(len(records))
        return move.append(records, self._clock.now_ms())

    async def _finish(self, move: FutureReplica) -> bool:
        """Have the copy take the log's place, if nothing keeps it from that."""
        log = move.log
        if not (move.is_prepared and self._is_on_disk(move)):
            await self._on_thread(move.prepare())
            start = move.copy.log_start_offset
            await self._on_thread(self._logs.checkpoint_log_starts)
            move.noted_start = start
            await self._on_thread(self._logs.checkpoint_high_watermarks)
        if log.is_being_cleaned or not (self._is_wanted(move) and move.is_prepared):
            return False
        source = log.directory.path
        if move.is_acknowledged_from_disk:
            old_path = await self._exchanged_on_disk(move)
        else:
            old_path = self._exchanged(move)
        if old_path is None:
            return True
        logger.info("moved %s from %s to %s", log.name, source, log.directory.path)
        self.moved += 1
        await self._on_thread(move.settle)
        self._logs.remove_later(log, [old_path], self._clock.now_ms())
        return True

    def _exchanged(self, move: FutureReplica) -> str | None:
        """Path of the old files, once the copy has taken the log's place; None if it cannot."""
        if not (move.take_rest(self._clock.now_ms()) and self._is_on_disk(move)):
            return None
        return self._logs.end_move(move)

    async def _exchanged_on_disk(self, move: FutureReplica) -> str | None:
        """As `_exchanged`, once the copy's disk has all records acknowledged from the log's.

        Meanwhile no flush of the log begins, so no more are acknowledged. Records appended then are
        copied in the end, and flushed with the files of the copy.
        """
        log = move.log
        if not move.take_rest(self._clock.now_ms()):
            return None
        timer = self._timers.schedule(HOLD_MS, log.flushes.release)
        log.flushes.hold()
        try:
            await self._on_thread(move.flush_records())
            while self._may_be_exchanged(move):
                old_path = self._exchanged(move)
                if old_path is not None:
                    return old_path
                await self._timers.sleep(0)
            return None
        finally:
            timer.cancel()
            log.flushes.release()

    def _may_be_exchanged(self, move: FutureReplica) -> bool:
        """Return whether further appends are all that can prevent the exchange."""
        log = move.log
        is_on_disk = log.flushes.is_held and self._is_on_disk(move)
        return is_on_disk and self._is_wanted(move) and not log.is_being_cleaned

    @staticmethod
    def _is_on_disk(move: FutureReplica) -> bool:
        """Return whether the copy's disk has all that the log's has, except deleted records."""
        return move.is_flushed_enough() and move.is_start_noted

    def _is_wanted(self, move: FutureReplica) -> bool:
        """Return whether it is neither cancelled nor its log gone."""
        return self._logs.moves.get(move.log.topic, move.log.partition) is move

    def _forget(self, move: FutureReplica) -> None:
        if self._is_wanted(move):
            self._logs.moves.forget(move.log.topic, move.log.partition)

    def _abandon(self, move: FutureReplica) -> None:
        """Give the copy up; if its disk does not let us, the next start finds it."""
        if self._is_wanted(move):
            try:
                self._logs.moves.call_off(move.log.topic, move.log.partition, self._clock.now_ms())
            except LogDirectoryError as error:
                logger.warning("%s: %s", move.log.name, error.message)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
