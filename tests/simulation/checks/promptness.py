"""Latency of brokers' answers: a lost wake-up shows as a late answer.

The moment at which a leader commits is noted; requests that wait for that must be answered within a
few times of the network's delay, unless a machine was cut off or asleep.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from tests.simulation.checks.refusals import report

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from tests.simulation.clients.pipeline import Answer
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import Machine, SimulatedCluster

DELAYS = 2
"""Longest time to an answer, in multiples of the network's longest delay."""
SPARE_SECONDS = 0.03


class Promptness:
    """Of all brokers of a run."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._commits: dict[tuple[int, int, At], tuple[list[int], list[float]]] = {}
        """High watermarks as they rose, and when, by broker, its life, and partition."""
        self.judged = 0
        self.latest = 0.0
        """Greatest delay of an answer so far."""

    def note(self, machine: Machine, partition: Partition) -> None:
        """A leader's high watermark, after a step."""
        key = machine.number, machine.lives, (partition.topic, partition.index)
        marks, times = self._commits.setdefault(key, ([], []))
        mark = partition.log.high_watermark
        if not marks or mark > marks[-1]:
            marks.append(mark)
            times.append(self._cluster.loop.now)

    def judge(self, answer: Answer, at: At, asked: tuple[int, int], offset: int) -> None:
        """An answer that waited until `offset` was committed; `asked` is a broker and its life."""
        marks, times = self._commits.get((*asked, at), ([], []))
        place = bisect_left(marks, offset)
        if place == len(marks):
            return
        since = max(times[place], answer.left_at, answer.previous_at)
        if since <= self._cluster.calm_since:
            return
        late = answer.began_at - since
        limit = DELAYS * self._cluster.network.latency_ms[1] / 1000 + SPARE_SECONDS
        self.judged += 1
        self.latest = max(self.latest, late)
        if late > limit:
            report(
                f"broker {asked[0]} slept: {at[0]}-{at[1]} was committed to {offset} at "
                f"{times[place]:.3f}, a {answer.kind} that was sent by {answer.left_at:.3f} had to "
                f"wait for that, and for nothing from {since:.3f} on; its answer began to come at "
                f"{answer.began_at:.3f}, where {limit:.3f} s would have been enough"
            )
