"""Builds key indexes of closed segments, and puts them in place.

Topics with `key.index.enable` are checked every `key.index.check.interval.ms`. A process indexes
segments without an index, one after the other, and the event loop renames its files, if the segment
is unchanged since the process began. An existing index is verified once, before it is used.

An index serves nothing but the speed of a look-up. A segment that cannot be indexed is retried
after a while, and logged once; its log directory stays online, since the parts that the broker
itself reads may well be readable.

The modules that read and write indexes are imported with the first topic that has one: most brokers
have none, and need not spend start-up time on it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from broker.maintenance.side_process import ProcessEndedError, SideProcess
from protocol.errors import ApiError
from storage import key_index
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor

    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.supervision import Supervision
    from config.broker import BrokerConfig
    from storage.key_index.job import IndexBuilt, Report
    from storage.log.log import Log
    from storage.segment.segment import Segment

T = TypeVar("T")

logger = logging.getLogger(__name__)

MODULE: Final = key_index.__name__
IDLE: Final = "--idle"
CHECK_SECONDS: Final = 1.0
"""Interval of checks that the segment being indexed still exists."""
HOLD_MS: Final = 60_000
"""Time for which a log is left alone after a segment of it could not be indexed."""


@dataclass(slots=True)
class IndexCounts:
    """Counters of the indexer since the start."""

    built: int = 0
    failed: int = 0
    bytes_read: int = 0
    """Of logs."""
    bytes_written: int = 0
    waiting: int = 0
    """Closed segments without an index, when it was last looked."""


@dataclass(slots=True)
class _Known:
    """State of the indexes of a log."""

    truncations: int
    sound: dict[int, Segment] = field(default_factory=dict)
    """Segments with an index, by base offset."""


class KeyIndexer:
    """All decisions, and all renaming of files, happen on the event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: Callable[[], Iterable[Log]],
        loop: BackgroundLoop,
        executor: Executor,
        supervision: Supervision,
    ) -> None:
        """`logs()` are those of topics that may have `key.index.enable`."""
        self._logs = logs
        self._clock, self._timers, _, self._slices, _ = loop
        self._executor = executor
        self._supervision = supervision
        self._interval_ms = config.key_index_check_interval_ms
        self._bytes_per_second = config.key_index_io_max_bytes_per_second
        self._known: dict[Log, _Known] = {}
        self._held_until_ms: dict[Log, int] = {}
        self._told: set[str] = set()
        self.counts = IndexCounts()

    def start(self) -> None:
        """Begin."""
        self._supervision.keep("key index", self._run)

    def note_damage(self, log: Log, base_offset: int) -> None:
        """Have an index rebuilt that a look-up could not use."""
        known = self._known.get(log)
        if known is not None and known.sound.pop(base_offset, None) is not None:
            logger.warning("key index of %s at offset %d is rebuilt", log.name, base_offset)

    async def _run(self) -> None:
        process = SideProcess(MODULE, IDLE)
        try:
            while True:
                found = await self._look_through()
                for log, segment in found:
                    if self._is_wanted(log, segment):
                        await self._index(log, segment, process)
                if not found:
                    await process.close()
                await self._timers.sleep(self._interval_ms)
        finally:
            await process.close()

    async def _look_through(self) -> list[tuple[Log, Segment]]:
        """Closed segments that have no index."""
        now_ms = self._clock.monotonic_ms()
        enabled = [log for log in self._logs() if log.config.key_index_enable]
        for log in self._known.keys() - enabled:
            await self._forget(log)
        self._held_until_ms = {
            log: until_ms for log, until_ms in self._held_until_ms.items() if until_ms > now_ms
        }
        found = []
        async for log in self._slices().each(enabled):
            if log.directory.failure is None and log not in self._held_until_ms:
                found += [(log, segment) for segment in await self._without_index(log)]
        self.counts.waiting = len(found)
        return found

    async def _forget(self, log: Log) -> None:
        """Forget a log that is deleted, or is no longer to be indexed."""
        del self._known[log]
        self._told.discard(log.name)
        if log.directory.failure is None:
            from storage.key_index.placement import discard_indexes  # noqa: PLC0415

            await self._attempt(log, lambda: discard_indexes(log))

    async def _without_index(self, log: Log) -> list[Segment]:
        from storage.key_index.placement import sound_indexes  # noqa: PLC0415

        truncations = log.offsets.truncations
        known = self._known.get(log)
        if known is None or known.truncations != truncations:
            closed = _closed(log)
            sound = await self._attempt(log, lambda: sound_indexes(log, closed))
            if sound is None:
                return []
            known = self._known[log] = _Known(truncations, sound)
        closed = _closed(log)
        present = {segment.base_offset: segment for segment in closed}
        for base_offset, segment in list(known.sound.items()):
            if present.get(base_offset) is not segment:
                del known.sound[base_offset]
        return [one for one in closed if one.base_offset not in known.sound]

    async def _index(self, log: Log, segment: Segment, process: SideProcess) -> None:
        from storage.key_index.job import BuildJob, IndexBuilt, JobFailed, encode_job  # noqa: PLC0415

        truncations = log.offsets.truncations
        job = BuildJob(log.path, segment.base_offset, segment.size, self._bytes_per_second)
        try:
            await process.submit(encode_job(job))
            report = await self._report(log, segment, process)
        except (OSError, ProcessEndedError) as error:
            self._hold(log, str(error) or repr(error))
            return
        if report is None or truncations != log.offsets.truncations:
            await process.close()
            return
        if isinstance(report, JobFailed):
            if self._is_wanted(log, segment):
                self._hold(log, report.message)
        elif isinstance(report, IndexBuilt):
            self._put_in_place(log, segment, report)

    async def _report(self, log: Log, segment: Segment, process: SideProcess) -> Report | None:
        """Report on the segment; None if it is no longer wanted."""
        from storage.key_index.job import decode_report  # noqa: PLC0415

        while (line := await process.line(CHECK_SECONDS)) is None:
            if not self._is_wanted(log, segment):
                return None
        try:
            return decode_report(line)
        except (ValueError, KeyError, TypeError):
            raise ProcessEndedError(f"its process says {line!r:.100}") from None

    def _put_in_place(self, log: Log, segment: Segment, built: IndexBuilt) -> None:
        from storage.key_index.placement import put_in_place  # noqa: PLC0415

        known = self._known.get(log)
        if known is None or not self._is_wanted(log, segment):
            return  # the file is removed by the next start, or overwritten
        try:
            put_in_place(log, segment)
        except OSError as error:
            self._hold(log, str(error))
            return
        known.sound[segment.base_offset] = segment
        counts = self.counts
        counts.built += 1
        counts.bytes_read += segment.size
        counts.bytes_written += built.size
        logger.debug(
            "key index of %s at offset %d: %d bytes for %d of log, %d entries",
            log.name,
            segment.base_offset,
            built.size,
            segment.size,
            built.entries,
        )

    def _is_wanted(self, log: Log, segment: Segment) -> bool:
        """Return whether it is a closed segment of a present log, to be indexed."""
        segments = log.segments
        return (
            log in self._known
            and log.directory.failure is None
            and log.config.key_index_enable
            and segment is not segments.active
            and segments[segments.floor(segment.base_offset)] is segment
        )

    def _hold(self, log: Log, reason: str) -> None:
        self._held_until_ms[log] = self._clock.monotonic_ms() + HOLD_MS
        self.counts.failed += 1
        if log.name not in self._told:
            self._told.add(log.name)
            logger.warning(
                "key index of %s failed, retrying every %d s: %s",
                log.name,
                HOLD_MS // 1000,
                reason,
            )

    async def _attempt(self, log: Log, work: Callable[[], T]) -> T | None:
        """Do it on a thread; None if it fails."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except LogDirectoryError:
            return None  # logged when it failed
        except (OSError, ApiError) as error:
            self._hold(log, str(error))
            return None


def _closed(log: Log) -> list[Segment]:
    """Closed segments; one of a single block needs no index."""
    from storage.key_index.index_builder import BLOCK_BYTES  # noqa: PLC0415

    active = log.segments.active
    return [one for one in log.segments if one is not active and one.size > BLOCK_BYTES]
