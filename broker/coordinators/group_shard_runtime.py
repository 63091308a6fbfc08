"""One partition of `__consumer_offsets` led by this broker: groups with a log and timers."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, NamedTuple

from broker.coordinators.shard_runtime import ShardRuntime, ShardServices, Stage
from coordinator import records
from coordinator.effects import Effects
from coordinator.records import OffsetsRecord
from coordinator.shard import GroupShard
from protocol.records.control import ControlType, parse_marker

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.timers import Cancellable
    from coordinator.effects import ShardEffects, Steps
    from coordinator.ports import MemberIds, TimerKey
    from coordinator.settings import GroupSettings
    from coordinator.topics import Topics
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.producer.verification_guards import VerificationGuard


class GroupParts(NamedTuple):
    """Parts shared by all shards of groups."""

    new_id: MemberIds
    topics: Topics
    loop: BackgroundLoop


class GroupShardRuntime(ShardRuntime[OffsetsRecord]):
    """Runs a `GroupShard` and its timers, which do nothing after `unload`."""

    def __init__(
        self,
        partition: Partition,
        surroundings: ShardServices,
        settings: GroupSettings,
        parts: GroupParts,
    ) -> None:
        self.groups = GroupShard(settings, self, parts.new_id, parts.topics)
        self._loop = parts.loop
        self._running: dict[TimerKey, Cancellable] = {}
        super().__init__(partition, surroundings, records, self.groups.replay)

    def apply(self, record: OffsetsRecord, log_offset: int, producer_id: int) -> None:
        """Apply one record of the log; positions of a transaction wait for its marker."""
        self.groups.replay(record, log_offset, producer_id)

    def apply_control(self, header: BatchHeader, batch: Buffer) -> None:
        """Apply a marker of the log."""
        marker = parse_marker(batch)
        if marker is not None:
            is_commit = marker.type is ControlType.COMMIT
            self.groups.end_transaction(header.producer_id, is_commit=is_commit)

    def loaded(self, now_ms: int) -> Effects:
        """Start the members' session timers."""
        return self.groups.on_loaded(now_ms)

    def unloaded(self) -> Effects:
        """Stop the timers and refuse all parked requests."""
        effects = self.groups.on_unloaded()
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
        return effects

    @property
    def content(self) -> str:
        """The number of groups, in words."""
        return f"{len(self.groups.group_ids)} groups"

    def run(
        self, effects: ShardEffects[OffsetsRecord], guard: VerificationGuard | None = None
    ) -> bool:
        """Append, replay, answer; then begin the jobs, each in a task of its own."""
        is_done = super().run(effects, guard)
        if isinstance(effects, Effects):
            for job in effects.jobs:
                self._loop.spawn(self._work(job), "job of a consumer group")
        return is_done

    async def _work(self, steps: Steps[None]) -> None:
        """Take the steps of a job, until it is done, fails to append, or the shard is unloaded."""
        with contextlib.closing(steps):
            async for effects in self._loop.slices().each(steps):
                if self.stage is not Stage.ACTIVE:
                    return
                if effects is not None and not self.run(effects):
                    return

    # coordinator.ports.Timers

    @property
    def now_ms(self) -> int:
        """Milliseconds of a monotonic clock, like the event loop's."""
        return self._clock.monotonic_ms()

    def start(self, key: TimerKey, delay_ms: int) -> None:
        """Start, or restart, a timer of a group."""
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()
        self._running[key] = self._timers.schedule(delay_ms, functools.partial(self._expire, key))

    def cancel(self, key: TimerKey) -> None:
        """Stop a timer of a group."""
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()

    def _expire(self, key: TimerKey) -> None:
        if self._running.pop(key, None) is not None and self.stage is Stage.ACTIVE:
            self.run(self.groups.expire(key, self._clock.now_ms()))
