"""Periodic work of a broker: checkpoints, flushes, retention, removal, producer expiry."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from broker.partitions.delay_repair import rebuild_delays
from protocol.errors import ApiError
from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.timers import Cancellable
    from config.broker import BrokerConfig
    from storage.directory.directories import LogDirectories

logger = logging.getLogger(__name__)

REMOVAL_INTERVAL_MS = 1000
"""Interval of removals, after `file.delete.delay.ms`. Fixed: it adds to that delay."""
FLUSH_CHECK_INTERVAL_MS = 1000
"""Interval of checks for `flush.ms`. Fixed: `flush.ms` holds to within a second.

Apache Kafka checks every `log.flush.scheduler.interval.ms`, by default never.
"""


def _nothing() -> None:
    """Default without a listener."""


class Housekeeping:
    """Periodic work on the logs. Work that waits for the disk goes to the executor."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogDirectories,
        loop: BackgroundLoop,
        executor: Executor,
        on_expired: Callable[[], None] = _nothing,
    ) -> None:
        """`on_expired` is called when retention has removed files."""
        self._config = config
        self._logs = logs
        self._clock, self._timers, self._spawn, self._slices, _ = loop
        self._executor = executor
        self._series: list[Cancellable] = []
        self._is_deleting = False
        self._on_expired = on_expired
        self.expired_files = 0
        """Files removed by retention so far."""

    def start(self) -> None:
        """Begin."""
        timers = self._timers
        config = self._config
        flush_ms = min(config.log_flush_scheduler_interval_ms, FLUSH_CHECK_INTERVAL_MS)
        work: list[tuple[int, Callable[[], None]]] = [
            (config.replica_high_watermark_checkpoint_interval_ms, self._checkpoint_watermarks),
            (config.log_flush_offset_checkpoint_interval_ms, self._checkpoint_recovery_points),
            (config.log_flush_start_offset_checkpoint_interval_ms, self._checkpoint_log_starts),
            (config.log_retention_check_interval_ms, self._delete_expired),
            (config.producer_id_expiration_check_interval_ms, self._expire_producers),
            (flush_ms, self._flush),
            (REMOVAL_INTERVAL_MS, self._remove),
        ]
        self._series = [timers.every(interval_ms, task) for interval_ms, task in work]
        # As in Apache, rare work is done soon after the start as well: a broker that is
        # restarted each minute must free its disk too.
        for early in (self._delete_expired, self._checkpoint_recovery_points):
            self._series.append(timers.schedule(config.log_initial_task_delay_ms, early))

    def stop(self) -> None:
        """Stop; work already on the executor is finished there."""
        for series in self._series:
            series.cancel()

    def _checkpoint_watermarks(self) -> None:
        self._submit(self._logs.checkpoint_high_watermarks)

    def _checkpoint_recovery_points(self) -> None:
        self._submit(self._logs.checkpoint_recovery_points)

    def _checkpoint_log_starts(self) -> None:
        self._submit(self._logs.checkpoint_log_starts)
        self._submit(self._logs.checkpoint_cleaner_offsets)

    def _delete_expired(self) -> None:
        if not self._is_deleting:
            self._is_deleting = True
            self._spawn(self._give_up_expired(), "retention")

    async def _give_up_expired(self) -> None:
        """Go through the logs, in slices: on many of them, segments have to be read for this."""
        count = 0
        try:
            async for files in self._slices().each(self._logs.delete_expired(self._clock.now_ms())):
                count += files
            await self._mend_delays()
        finally:  # should this raise, the next pass begins as usual
            self._is_deleting = False
        self.expired_files += count
        if count:
            self._on_expired()
            logger.info("retention deleted %d segment files", count)

    async def _mend_delays(self) -> None:
        """Rebuild damaged delay indexes that blocked retention; the next pass deletes.

        On the leader, delivery does so itself; on followers nothing else does.
        """
        damages = self._logs.damages
        while damages:
            log, damage = damages.popitem()
            logger.warning(
                "retention waits for %s: a delay index is made anew: %s", log.name, damage
            )
            try:
                await rebuild_delays(log, damage, self._slices(), self._executor, lambda: False)
            except ApiError as error:
                logger.warning("retention skipped %s: %s", log.name, error.message)

    def _expire_producers(self) -> None:
        self._spawn(self._forget_idle_producers(), "producer id expiry")

    async def _forget_idle_producers(self) -> None:
        async for _ in self._slices().each(self._logs.expire_producers(self._clock.now_ms())):
            pass

    def _flush(self) -> None:
        for flush in self._logs.flush_due(self._clock.now_ms()):
            self._submit(flush)

    def _remove(self) -> None:
        """One file after the other: giving back a large one takes a processor a tenth of a second.

        Four at once, as compaction leaves them, would take all processors from everybody else.
        """
        paths = self._logs.take_removals(self._clock.now_ms())
        if paths:
            self._submit(*(partial(self._logs.remove, path) for path in paths))

    def _submit(self, *works: Callable[[], object]) -> None:
        """Have a thread do it all, in this order."""
        self._executor.submit(_run, works)


def _run(works: tuple[Callable[[], object], ...]) -> None:
    for work in works:
        try:
            work()
        except LogDirectoryError as error:
            logger.warning("%s", error)
        except Exception:
            logger.exception("housekeeping failed")
