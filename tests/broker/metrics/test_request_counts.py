"""Derived counts, and the histogram buckets of request times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from broker.metrics.collector import ATTEMPTS, steadily
from broker.metrics.records_in import RecordsIn
from broker.metrics.request_counts import BOUNDS_SECONDS, SECOND_NS, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from broker.partitions.partition import Partition


@dataclass
class Log:
    log_end_offset: int


@dataclass(eq=False)
class Replica:
    log: Log = field(default_factory=lambda: Log(0))
    is_leader: bool = True
    leader_epoch: int = 0
    leader_epoch_start_offset: int = 0


def totals(records: RecordsIn, **topics: Replica) -> dict[str, int]:
    by_topic = {topic: {0: cast("Partition", replica)} for topic, replica in topics.items()}
    return records.totals(by_topic)


def test_records_are_those_since_this_broker_leads() -> None:
    records = RecordsIn()
    old = Replica(Log(1000), leader_epoch_start_offset=990)
    assert totals(records, old=old) == {"old": 10}
    old.log.log_end_offset = 1005
    assert totals(records, old=old) == {"old": 15}


def test_records_appended_by_earlier_leaders_are_not_counted() -> None:
    records = RecordsIn()
    replica = Replica(Log(5))
    assert totals(records, t=replica) == {"t": 5}
    replica.is_leader = False
    assert totals(records, t=replica) == {}
    replica.is_leader, replica.leader_epoch, replica.leader_epoch_start_offset = True, 2, 50
    replica.log.log_end_offset = 53
    assert totals(records, t=replica) == {"t": 3}


def test_a_new_epoch_goes_on_counting() -> None:
    records = RecordsIn()
    replica = Replica(Log(5))
    totals(records, t=replica)
    replica.leader_epoch, replica.leader_epoch_start_offset = 1, 6
    replica.log.log_end_offset = 8
    assert totals(records, t=replica) == {"t": 7}


def test_a_truncated_log_takes_nothing_back() -> None:
    records = RecordsIn()
    replica = Replica(Log(5))
    totals(records, t=replica)
    replica.log.log_end_offset = 3
    assert totals(records, t=replica) == {"t": 5}


def test_times_fall_into_the_first_bound_they_do_not_exceed() -> None:
    counts = RequestCounts()
    for took in (0, int(BOUNDS_SECONDS[0] * SECOND_NS), int(BOUNDS_SECONDS[0] * SECOND_NS) + 1):
        counts.note_time(took)
    counts.note_time(3600 * SECOND_NS)
    assert counts.within[:2] == [2, 1]
    assert counts.within[-1] == 1
    assert len(counts.within) == len(BOUNDS_SECONDS) + 1


def test_a_metrics_reading_disturbed_by_a_change_is_repeated() -> None:
    readings = 0

    def read() -> Iterator[Metric]:
        nonlocal readings
        readings += 1
        if readings < ATTEMPTS:
            raise RuntimeError("dictionary changed size during iteration")
        yield from ()

    assert steadily(read) == []
    assert readings == ATTEMPTS
