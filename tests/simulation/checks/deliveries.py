"""Records that wait: none is early, and in the end each was delivered once, or is dead once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from protocol.records.record import iterate_records
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.simulation.checks.refusals import report
from tests.simulation.checks.watchman import Violation
from tests.simulation.clients.delayed import AGAIN, DEAD, LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.partitions.partition import Partition
    from storage.log.log import Log
    from tests.simulation.clients.delayed import DelayedProducer
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import Machine, SimulatedCluster

EARLIEST = "was delivered too early"


class DeliveryWatch:
    """Looks at what brokers append while they lead."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int, At], int] = {}

    def look(self, machine: Machine, partition: Partition, now_ms: int) -> None:
        """After a step of a broker, by whose clock it is `now_ms`."""
        at = partition.topic, partition.index
        key = machine.name, machine.lives, at
        end = partition.log.log_end_offset
        begin = self._ends.get(key, end)
        self._ends[key] = end
        if begin >= end or not partition.is_leader:
            return
        for one in judge(partition.log, begin).delivered:
            if one.at < begin or one.record.timestamp <= now_ms:
                continue
            # It is due together with what a clock delivered that was ahead: its own time counts.
            waited = judge(partition.log).waited.get(one.source)
            stated_ms = None if waited is None else waited.stated_ms
            if stated_ms is None or stated_ms > now_ms:
                report(
                    f"{machine.name}: {at[0]}-{at[1]} at {one.at} {EARLIEST}: "
                    f"{stated_ms} is its time, and it is {now_ms}"
                )


def audit_deliveries(cluster: SimulatedCluster, producer: DelayedProducer) -> None:
    """Compare what brokers have said with what is in the logs; raises Violation."""
    for at in (LATER, AGAIN):
        log, told = _leading_log(cluster, at), producer.told[at]
        found = judge(log)
        where = f"{at[0]}-{at[1]}"
        with _violation(f"{where} delivered twice, out of order, or something else"):
            check_order(found, is_retry=at == AGAIN)
        dead = set(told.dead)
        for offset, one in list(found.waited.items()):
            if one.record.value in dead:
                del found.waited[offset]  # they are looked for elsewhere
        with _violation(f"{where} did not deliver all that waited, or what did not"):
            check_complete(found)
        delivered = set(found.delivered_sources)
        for offset, value in told.values.items():
            waited = found.waited.get(offset)
            kept = found.direct.get(offset) if waited is None else waited.record
            if value not in dead and (kept is None or kept.value != value):
                raise Violation(f"{at[0]}-{at[1]} lacks {value[:40]!r} at {offset}: {kept}")
        if told.cancelled & delivered:
            raise Violation(f"{at[0]}-{at[1]} delivered what was cancelled: {told.cancelled}")
        _check_dead(cluster, told.dead)


@contextlib.contextmanager
def _violation(text: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise Violation(f"{text}: {error}") from error


def unfinished(cluster: SimulatedCluster, producer: DelayedProducer) -> str:
    """Describe the unfinished work."""
    if not producer.is_over:
        return f"{producer.name} is not done, and waits for {producer.waits_for()}"
    for at in (LATER, AGAIN):
        for _, partition in cluster.partitions():
            if (partition.topic, partition.index) == at and partition.is_leader:
                needed = partition.log.delays.needed_from()
                if needed < partition.log.log_end_offset:
                    return f"{at[0]}-{at[1]} waits from {needed} on"
    return ""


def _check_dead(cluster: SimulatedCluster, sent: list[bytes]) -> None:
    """Dead letters came once, in the order in which they were sent."""
    if not sent:
        return
    log = _leading_log(cluster, DEAD)
    batches = log.read_batches(log.log_start_offset, log.log_end_offset)
    arrived = [record.value for batch in batches for record in iterate_records(batch)]
    if arrived != sent:
        raise Violation(f"dead letters: {len(sent)} were sent, and these came: {arrived}")


def _leading_log(cluster: SimulatedCluster, at: At) -> Log:
    (found,) = (
        partition.log
        for _, partition in cluster.partitions()
        if (partition.topic, partition.index) == at and partition.is_leader
    )
    return found
