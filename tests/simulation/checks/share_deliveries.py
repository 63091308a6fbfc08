"""Deliveries of a share group: each record acquired by one member at a time, until finished.

Deliveries are seen where they happen, as an answer may be lost on its way and counts all the same.
Acknowledgements hold once the member has heard so. A leader that has not heard of its successor may
deliver what that one has finished, and has its acknowledgements refused: it is not judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker.share_partitions.led_partition import LedSharePartition
from coordinator.share_partitions.record_range import AcknowledgeType
from tests.simulation.checks.refusals import report
from tests.simulation.machine.hosts import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
    from coordinator.share_partitions.acquisition import Acquired
    from tests.simulation.checks.watchman import Watchman
    from tests.simulation.cluster import SimulatedCluster

Place = tuple[int, int]
"""A partition and an offset."""
FINAL = AcknowledgeType.ACCEPT, AcknowledgeType.REJECT, AcknowledgeType.GAP


class Held(NamedTuple):
    """A record that a member has."""

    member: str
    until_ms: int


class ShareDeliveries:
    """One share group in one topic."""

    def __init__(
        self, cluster: SimulatedCluster, watchman: Watchman, group_id: str, limits: tuple[int, int]
    ) -> None:
        """`limits` are the deliveries that a record may have, and milliseconds of a lock."""
        self.group_id = group_id
        self.newest_epoch = 0
        """The highest that any member was told."""
        self.count = 0
        """Deliveries of single records."""
        self._cluster = cluster
        self._watchman = watchman
        self._most_deliveries, self._lock_ms = limits
        self._final: dict[Place, str] = {}
        self._maybe_final: set[Place] = set()
        """Offsets with a final acknowledgement whose answer the member may not have received."""
        self._released: dict[Place, int] = {}
        """The delivery count with which a release was accepted."""
        self._counts: dict[Place, int] = {}
        """The highest delivery count."""
        self._seen: dict[LedSharePartition, dict[int, int]] = {}
        """The last delivery count, by leader and offset."""
        self._held: dict[LedSharePartition, dict[int, Held]] = {}

    def watch(self) -> Callable[[], None]:
        """Look at deliveries from now on; returns what undoes it."""
        kind = LedSharePartition
        acquire, acknowledge, leave = kind.acquire, kind.acknowledge, kind.leave

        def seen_acquire(led: LedSharePartition, *how: Any) -> Any:
            taken = acquire(led, *how)
            if taken is not None and led.key.group_id == self.group_id:
                self._acquired(led, how[0].member_id, taken.acquired)
            return taken

        def seen_acknowledge(
            led: LedSharePartition, member_id: str, batches: Sequence[AcknowledgementBatch]
        ) -> Generator[None, None, Any]:
            done = yield from acknowledge(led, member_id, batches)
            if led.key.group_id == self.group_id:
                self._acknowledged(led, batches)
            return done

        def seen_leave(led: LedSharePartition, member_id: str) -> bool:
            held = self._held.get(led, {})
            for offset in [each for each, one in held.items() if one.member == member_id]:
                del held[offset]
            return leave(led, member_id)

        kind.acquire = seen_acquire  # type: ignore[method-assign, assignment]
        kind.acknowledge = seen_acknowledge  # type: ignore[method-assign, assignment]
        kind.leave = seen_leave  # type: ignore[method-assign, assignment]

        def undo() -> None:
            kind.acquire = acquire  # type: ignore[method-assign]
            kind.acknowledge = acknowledge  # type: ignore[method-assign]
            kind.leave = leave  # type: ignore[method-assign]

        return undo

    def accepted(
        self, member: str, partition: int, first: int, types: Iterable[int], delivery_count: int
    ) -> None:
        """A member has heard that its acknowledgements hold, of each record from `first` on."""
        for offset, kind in enumerate(types, first):
            place = partition, offset
            if kind in FINAL:
                self._final[place] = member
            elif kind == AcknowledgeType.RELEASE:
                self._released[place] = max(delivery_count, self._released.get(place, 0))

    def lost(self, partition: int, end: int) -> list[int]:
        """Offsets before `end` that were neither acknowledged nor delivered as often as may be."""
        return [
            offset
            for offset in range(end)
            if (partition, offset) not in self._final
            and (partition, offset) not in self._maybe_final
            and self._counts.get((partition, offset), 0) < self._most_deliveries
        ]

    @property
    def _now_ms(self) -> int:
        return int(self._cluster.loop.now * 1000)

    def _acquired(self, led: LedSharePartition, member: str, ranges: Sequence[Acquired]) -> None:
        host = HOST.get()
        assert host is not None
        machine = host.machine
        assert machine is not None
        partition = led.partition
        at, broker = (partition.topic, partition.index), (machine.number, machine.lives)
        leads = self._watchman.leads_since(at, broker, self._cluster.loop.now)
        seen = self._seen.setdefault(led, {})
        held = self._held.setdefault(led, {})
        until_ms = self._now_ms + self._lock_ms
        for one in ranges:
            for offset in range(one.first, one.last + 1):
                self.count += 1
                problem = self._problem(led, offset, one.delivery_count)
                if leads and not problem:
                    problem = self._problem_of_leader((at[1], offset), one.delivery_count)
                if problem:
                    report(
                        f"share group {self.group_id}: {machine.name} delivers {at[0]}-{at[1]} at "
                        f"{offset} to {member} for the {one.delivery_count}. time, {problem}"
                    )
                seen[offset] = one.delivery_count
                held[offset] = Held(member, until_ms)
                place = at[1], offset
                self._counts[place] = max(one.delivery_count, self._counts.get(place, 0))

    def _problem(self, led: LedSharePartition, offset: int, count: int) -> str:
        before = self._seen[led].get(offset, 0)
        if count <= before:
            return f"though the count was {before}"
        holder = self._held[led].get(offset)
        if holder is not None and holder.until_ms > self._now_ms:
            return f"while {holder.member} has it"
        if count > self._most_deliveries:
            return "which is too often"
        return ""

    def _problem_of_leader(self, place: Place, count: int) -> str:
        if place in self._final:
            return f"though {self._final[place]} had it acknowledged: it comes again"
        before = self._released.get(place, 0)
        if count <= before:
            return f"though it was released after the {before}.: its count fell"
        return ""

    def _acknowledged(
        self, led: LedSharePartition, batches: Sequence[AcknowledgementBatch]
    ) -> None:
        held = self._held.get(led, {})
        index = led.partition.index
        for batch in batches:
            length = batch.last - batch.first + 1
            types = batch.types if len(batch.types) > 1 else list(batch.types) * length
            for offset, kind in enumerate(types, batch.first):
                holder = held.pop(offset, None)
                if kind == AcknowledgeType.RENEW and holder is not None:
                    held[offset] = Held(holder.member, self._now_ms + self._lock_ms)
                if kind in FINAL:
                    self._maybe_final.add((index, offset))
