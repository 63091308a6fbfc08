"""What a broker does by the clock: checkpoints, flushes, retention, removal, producer expiry."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, cast

from storage.errors import LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from broker.clock import Clock
    from broker.timers import Cancellable, Timers
    from config.broker import BrokerConfig
    from storage.directories import LogDirectories

logger = logging.getLogger(__name__)

REMOVAL_INTERVAL_MS = 1000
SLICE_MS = 5
FLUSH_CHECK_INTERVAL_MS = 1000
"""Apache looks after `flush.ms` every log.flush.scheduler.interval.ms, by default never."""


def _nothing() -> None:
    """Nobody wants to know."""


class Housekeeping:
    """Periodic work on the logs. What waits for the disk goes to the executor."""

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogDirectories,
        clock: Clock,
        executor: Executor,
        on_expired: Callable[[], None] = _nothing,
    ) -> None:
        """`on_expired` is called when retention has given up files."""
        self._config = config
        self._logs = logs
        self._clock = clock
        self._executor = executor
        self._timers: Timers = cast("Timers", None)
        self._series: list[Cancellable] = []
        self._checkpointed: object = None
        self._is_deleting = False
        self._on_expired = on_expired
        self.expired_files = 0
        """Files that retention gave up so far."""

    def start(self, timers: Timers) -> None:
        """Begin."""
        self._timers = timers
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
        # As in Apache, what comes rarely comes soon after the start as well: a broker that is
        # started anew each minute must free its disk too.
        for early in (self._delete_expired, self._checkpoint_recovery_points):
            self._series.append(timers.schedule(config.log_initial_task_delay_ms, early))

    def stop(self) -> None:
        """End; what is on the executor already is finished there."""
        for series in self._series:
            series.cancel()

    def _checkpoint_watermarks(self) -> None:
        """Write high watermarks, unless none has moved since the last time."""
        state = [log.high_watermark for log in self._logs]
        if state != self._checkpointed:
            self._checkpointed = state
            self._submit(self._logs.checkpoint_high_watermarks)

    def _checkpoint_recovery_points(self) -> None:
        self._submit(self._logs.checkpoint_recovery_points)

    def _checkpoint_log_starts(self) -> None:
        self._submit(self._logs.checkpoint_log_starts)
        self._submit(self._logs.checkpoint_cleaner_offsets)

    def _delete_expired(self) -> None:
        """Go through the logs, in slices: on many of them, segments have to be read for this."""
        if not self._is_deleting:
            self._delete_some(self._logs.delete_expired(self._clock.now_ms()), 0)

    def _delete_some(self, steps: Iterator[int], count: int) -> None:
        started_ms = self._clock.monotonic_ms()
        self._is_deleting = False  # should this raise, the next pass begins as usual
        for files in steps:
            count += files
            if self._clock.monotonic_ms() - started_ms >= SLICE_MS:
                self._is_deleting = True
                self._timers.soon(partial(self._delete_some, steps, count))
                return
        self.expired_files += count
        if count:
            self._on_expired()
            logger.info("retention gave up %d files", count)

    def _expire_producers(self) -> None:
        self._logs.expire_producers(self._clock.now_ms())

    def _flush(self) -> None:
        for flush in self._logs.flush_due(self._clock.now_ms()):
            self._submit(flush)

    def _remove(self) -> None:
        for path in self._logs.take_removals(self._clock.now_ms()):
            self._submit(lambda path=path: self._logs.remove(path))  # type: ignore[misc]

    def _submit(self, work: Callable[[], None]) -> None:
        self._executor.submit(_run, work)


def _run(work: Callable[[], None]) -> None:
    try:
        work()
    except LogDirectoryError as error:
        logger.warning("%s", error)
    except Exception:
        logger.exception("housekeeping failed")
