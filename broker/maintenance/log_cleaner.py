"""Schedules compaction of logs, and handles logs that cannot be compacted.

Each of `log.cleaner.threads` takes the most worthwhile log (`storage.compaction.choice`), has a
process rewrite it, and puts each new segment in place as soon as that is written. If no log is
worth it, the process ends, and after `log.cleaner.backoff.ms` the logs are assessed again.

A log that is truncated, deleted or no longer compacted meanwhile is left as it is, with the
segments put in place so far: each of them is whole. So is one whose disk is full, and retried
later. An unreadable log is reported once, and left alone until the broker restarts.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, TypeVar

from broker.maintenance.cleaner_process import CleanerProcess
from broker.maintenance.side_process import ProcessEndedError
from broker.partitions.delay_repair import rebuild_delays
from protocol.errors import ApiError
from storage.compaction.choice import assess, make_job
from storage.compaction.job import (
    NO_SEGMENT,
    CleanedGroup,
    CleanerLimits,
    CleaningDone,
    CleaningFailed,
)
from storage.compaction.swap import LogUnderCleaning, discard_cleaned
from storage.errors import EXHAUSTION, DamagedDelaysError, ExhaustedError, LogDirectoryError
from storage.log.log_rules import COMPACT

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.supervision import Supervision
    from config.broker import BrokerConfig
    from storage.compaction.choice import Cleanable
    from storage.directory.directories import LogDirectories
    from storage.log.log import Log

T = TypeVar("T")

logger = logging.getLogger(__name__)

CHECK_SECONDS: Final = 1.0
"""Interval of checks that a log under cleaning is still wanted."""
HOLD_MS: Final = 60_000
"""Time for which a log is left alone after a cleaning that failed for lack of a resource."""
LARGEST_MAP: Final = 2**31 - 1
SEED_BYTES: Final = 32
PASSING: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, *EXHAUSTION}
"""Errors that may be over the next time: a full disk, no descriptors."""


class _UnwantedError(Exception):
    """The log has changed since its cleaning began."""


@dataclass(slots=True)
class CleanerCounts:
    """Counters of the cleaner since the start."""

    cleanings: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    """Of the same logs."""
    uncleanable_logs: int = 0


class LogCleaner:
    """All decisions and all renaming of files happen on the event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogDirectories,
        loop: BackgroundLoop,
        executor: Executor,
        supervision: Supervision,
    ) -> None:
        self._logs = logs
        self._clock, self._timers, _, self._slices, _ = loop
        self._executor = executor
        self._supervision = supervision
        self._is_started = False
        self._running: set[int] = set()
        self.reconfigure(config)
        self._uncleanable: set[Log] = set()
        self._held_until_ms: dict[Log, int] = {}
        self.counts = CleanerCounts()

    def start(self) -> None:
        """Begin, as often at once as there may be processes."""
        self._is_started = True
        self._fill()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply this configuration, once cleanings under way are done."""
        threads = self._threads = config.log_cleaner_threads
        share = max(1, threads)
        self._backoff_ms = config.log_cleaner_backoff_ms
        self._limits = CleanerLimits(
            min(config.log_cleaner_dedupe_buffer_size // share, LARGEST_MAP),
            config.log_cleaner_io_buffer_load_factor,
            config.log_cleaner_io_buffer_size // share // 2,
            config.log_cleaner_io_max_bytes_per_second / share,
        )
        self._fill()

    def _fill(self) -> None:
        for number in range(self._threads):
            if self._is_started and number not in self._running:
                self._running.add(number)
                name = f"log cleaner {number}"
                self._supervision.spawn(self._serve(name, number), name)

    async def _serve(self, name: str, number: int) -> None:
        try:
            await self._supervision.persist(name, partial(self._run, number))
        finally:
            self._running.discard(number)

    async def _run(self, number: int) -> None:
        """Clean until the broker stops, or fewer threads are configured."""
        process = CleanerProcess()
        try:
            while number < self._threads:
                chosen = await self._choose()
                if chosen is None:
                    await process.close()
                    await self._timers.sleep(self._backoff_ms)
                    continue
                try:
                    await self._clean(chosen, process)
                finally:
                    chosen.log.is_being_cleaned = False
        finally:
            await process.close()

    async def _choose(self) -> Cleanable | None:
        """The most worthwhile log, marked as in progress; None if no log is worth cleaning."""
        best: Cleanable | None = None
        now_ms = self._clock.now_ms()
        self._forget_what_is_over()
        async for log in self._slices().each(list(self._logs.noted.compacted)):
            if self._may_clean(log):
                found = self._assess(log, now_ms)
                if found and found.is_worth_it and (not best or found.ratio > best.ratio):
                    best = found
        if best is None or not self._may_clean(best.log):
            return None
        best.log.is_being_cleaned = True
        return best

    def _forget_what_is_over(self) -> None:
        """Forget logs that are deleted, and holds that have ended."""
        self._uncleanable = {log for log in self._uncleanable if self._is_known(log)}
        self.counts.uncleanable_logs = len(self._uncleanable)
        now_ms = self._clock.monotonic_ms()
        self._held_until_ms = {
            log: until_ms
            for log, until_ms in self._held_until_ms.items()
            if until_ms > now_ms and self._is_known(log)
        }

    def _is_known(self, log: Log) -> bool:
        return self._logs.get(log.topic, log.partition) is log

    def _assess(self, log: Log, now_ms: int) -> Cleanable | None:
        try:
            with log.directory:
                return assess(log, now_ms)
        except Exception as error:  # noqa: BLE001 - reported
            self._cannot_clean(log, error)
            return None

    def _may_clean(self, log: Log) -> bool:
        return (
            not log.is_being_cleaned
            and log not in self._uncleanable
            and log not in self._held_until_ms
            and self._is_present(log)
        )

    def _is_present(self, log: Log) -> bool:
        return (
            self._is_known(log)
            and log.directory.failure is None
            and COMPACT in log.config.cleanup_policy
        )

    async def _clean(self, chosen: Cleanable, process: CleanerProcess) -> None:
        """Clean one log; an error is logged and does not stop the others."""
        log = chosen.log
        started_ms = self._clock.monotonic_ms()
        try:
            done = await self._rewrite(chosen, process)
        except _UnwantedError:
            await process.close()
            logger.info("compaction of %s abandoned: the log has changed since", log.name)
        except Exception as error:  # noqa: BLE001 - reported
            await process.close()
            self._cannot_clean(log, error)
        else:
            if isinstance(done, CleaningFailed):
                if done.damaged_delays == NO_SEGMENT:
                    self._note_failure(log, done)
                else:
                    await self._mend_delays(log, done)
            else:
                self._note_success(chosen, done, started_ms)
                await self._in_background(self._logs.checkpoint_cleaner_offsets)
                return
        with suppress(OSError, LogDirectoryError):
            await self._in_background(lambda: discard_cleaned(log))

    async def _rewrite(
        self, chosen: Cleanable, process: CleanerProcess
    ) -> CleaningDone | CleaningFailed:
        """Have the process rewrite the log, and put its segments in place."""
        log = chosen.log
        target = LogUnderCleaning(log)
        now_ms = self._clock.now_ms()
        await self._in_background(lambda: discard_cleaned(log))  # or this one must not begin
        await process.submit(
            await self._in_background(
                lambda: make_job(chosen, self._limits, now_ms, token_bytes(SEED_BYTES)).encode()
            )
        )
        while True:
            report = await process.report(CHECK_SECONDS)
            if not (self._is_present(log) and target.is_as_it_was()):
                raise _UnwantedError
            if isinstance(report, CleanedGroup):
                removals = target.swap_in(report)
                if removals is None:
                    raise _UnwantedError
                self._logs.remove_later(log, removals, self._clock.now_ms())
                await self._in_background(log.files.sync_names)
                await process.go_on()
            elif report is not None:
                return report

    def _note_success(self, chosen: Cleanable, done: CleaningDone, started_ms: int) -> None:
        log = chosen.log
        log.offsets.note_cleaned(done.end_offset)
        before = chosen.clean_bytes + chosen.cleanable_bytes
        self.counts.cleanings += 1
        self.counts.bytes_before += before
        self.counts.bytes_after += done.bytes_written
        logger.info(
            "compacted %s up to offset %d: %d bytes became %d, in %d ms%s",
            log.name,
            done.end_offset,
            before,
            done.bytes_written,
            self._clock.monotonic_ms() - started_ms,
            f"; {done.keyless} records without a key were dropped" if done.keyless else "",
        )

    async def _mend_delays(self, log: Log, failed: CleaningFailed) -> None:
        """Rebuild the delay index, so that the log can be cleaned later."""
        damage = DamagedDelaysError(failed.message, failed.damaged_delays)
        self._hold(log, f"{failed.message}; its delay index is made anew from the log")
        slices = self._slices()
        try:
            await rebuild_delays(
                log, damage, slices, self._executor, lambda: not self._is_present(log)
            )
        except Exception as error:  # noqa: BLE001 - reported
            self._cannot_clean(log, error)

    def _note_failure(self, log: Log, failed: CleaningFailed) -> None:
        if failed.errno in PASSING:
            self._hold(log, f"{failed.message}; its segments stay as they are")
        elif failed.errno not in (0, errno.ENOENT):
            with suppress(LogDirectoryError), log.directory:
                raise OSError(failed.errno, failed.message)
        else:
            self._give_up(log, failed.message)

    def _cannot_clean(self, log: Log, error: Exception) -> None:
        """Handle an error of one log; the others are not affected."""
        if isinstance(error, ApiError) and not isinstance(error, ExhaustedError):
            if not isinstance(error, LogDirectoryError):  # logged when it failed
                self._give_up(log, error.message)
            return
        if not isinstance(error, ProcessEndedError | OSError | ExhaustedError):
            self._supervision.note(f"cleaning {log.name}", error, "log cleaning")
        self._hold(log, str(error) or repr(error))

    def _give_up(self, log: Log, reason: str) -> None:
        self._uncleanable.add(log)
        self.counts.uncleanable_logs = len(self._uncleanable)
        logger.error("compaction of %s disabled until the broker restarts: %s", log.name, reason)

    def _hold(self, log: Log, reason: str) -> None:
        self._held_until_ms[log] = self._clock.monotonic_ms() + HOLD_MS
        logger.warning(
            "compaction of %s failed, retrying in %d s: %s", log.name, HOLD_MS // 1000, reason
        )

    async def _in_background(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
