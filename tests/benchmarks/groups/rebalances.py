"""Cost of KIP-848 groups to their coordinator: rebalances, heartbeats and memory.

    python -m tests.benchmarks.groups.rebalances [--smoke]

`make bench ARGS="--rows groups"` has the same rows beside Apache Kafka 4. Members are those of
`members.py`, with the intervals that both makes have by default, and the broker's processor time is
all of its process, as it does nothing else.

    join        all members at once, until all partitions are owned and the group is Stable
    exchange    a tenth of the members leaves, and as many join, at once; until Stable again
    heartbeats  nothing else happens; processor time of the broker for each second
    memory      resident, more than before the members joined
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.groups import ListGroupsRequest
from tests.benchmarks.groups.members import Crowd
from tests.benchmarks.measurement import contestants, report
from tests.benchmarks.measurement.contestants import OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import FreshTopic, Result
from tests.benchmarks.measurement.timing import is_smoke_run
from tests.interop.security.principals import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.brokers.broker_process import BrokerProcess

STABLE_SECONDS = 300.0
LEAVING_SHARE = 10
MEGABYTE = 1 << 20
QUICK = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Groups of one kind."""

    groups: int
    members: int
    """In each group."""
    partitions: int
    """Of the one topic that all of them consume."""

    @property
    def text(self) -> str:
        """For the names of rows."""
        groups = "a group" if self.groups == 1 else f"{self.groups:,} groups"
        return f"{groups} of {self.members:,} members over {self.partitions:,} partitions"


@dataclass(frozen=True, slots=True)
class Size:
    """Groups to measure, and keys of the broker."""

    shapes: tuple[Shape, ...]
    resting_seconds: float
    keys: Mapping[str, str] = field(default_factory=dict)


FULL = Size((Shape(1, 1_000, 1_000), Shape(1, 10_000, 1_000), Shape(1_000, 10, 10)), 20.0)
SMOKE = Size((Shape(1, 20, 10), Shape(3, 2, 2)), 0.5, QUICK)


class RebalanceRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = SMOKE if is_smoke else FULL
        self._rows = {shape: _reports_of(shape) for shape in self._size.shapes}

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [row for rows in self._rows.values() for row in rows.values()]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure a broker of each make in turn, a new one for each shape and round."""
        for number in range(rounds):
            for shape in self._size.shapes:
                for make in makes if number % 2 == 0 else reversed(makes):
                    place = directory / make
                    broker = contestants.build(make, place, self._size.keys)
                    try:
                        broker.start()
                        self._measure_once(make, broker, shape)
                    finally:
                        broker.kill()
                        shutil.rmtree(place)

    def _measure_once(self, make: str, broker: BrokerProcess, shape: Shape) -> None:
        rows, groups = self._rows[shape], [f"group-{number}" for number in range(shape.groups)]
        client = Principal(broker.port)
        with FreshTopic(broker, "consumed", shape.partitions), Crowd(broker.port) as crowd:
            _warm_up(broker, crowd, client)
            memory = broker.resident_bytes()

            def rebalance(joining: int) -> Result:
                before = broker.cpu_seconds()
                for group in groups:
                    crowd.join(group, ["consumed"], joining)
                seconds = crowd.run_until(
                    lambda: (
                        crowd.have_all(shape.partitions) and stable_groups(client) == shape.groups
                    ),
                    STABLE_SECONDS,
                )
                return Result(seconds, cpu_seconds=broker.cpu_seconds() - before)

            rows["join"].results[make].append(rebalance(shape.members))
            before, answered = broker.cpu_seconds(), crowd.heartbeats
            crowd.run(self._size.resting_seconds)
            cpu_seconds = (broker.cpu_seconds() - before) / self._size.resting_seconds
            rows["heartbeats"].results[make].append(
                Result(
                    (crowd.heartbeats - answered) / self._size.resting_seconds,
                    cpu_seconds=cpu_seconds,
                )
            )
            grown = (broker.resident_bytes() - memory) / MEGABYTE
            rows["memory"].results[make].append(Result(grown))
            if "exchange" in rows:
                leaving = shape.members // LEAVING_SHARE
                crowd.leave(list(crowd.members.values())[::LEAVING_SHARE])
                rows["exchange"].results[make].append(rebalance(leaving))
        client.close()


def stable_groups(client: Principal) -> int:
    """Return the number of Stable groups."""
    answer = client.ask(ListGroupsRequest(states_filter=["Stable"]), 5)
    assert not answer.error_code, answer
    return len(answer.groups)


def _warm_up(broker: BrokerProcess, crowd: Crowd, client: Principal) -> None:
    """A small group, so that the coordinator is loaded and code has run; it leaves again."""
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["warm-up"]), 4)
    with FreshTopic(broker, "warm-up", 10):
        crowd.join("warm-up", ["warm-up"], 10)
        crowd.run_until(lambda: crowd.have_all(10) and stable_groups(client) == 1, STABLE_SECONDS)
        crowd.leave(list(crowd.members.values()))
        crowd.run_until(lambda: stable_groups(client) == 0, STABLE_SECONDS)


def _reports_of(shape: Shape) -> dict[str, RowReport]:
    rows = {
        "join": RowReport(f"{shape.text}: join, until stable", "s", "CPU ≤ 0.5"),
        "heartbeats": RowReport("the same: heartbeats, CPU s for each second", "per s", ""),
        "memory": RowReport("the same: resident memory, more than before", "MB", ""),
    }
    if shape.groups == 1:
        name = "the same: a tenth of the members is exchanged, until stable"
        rows["exchange"] = RowReport(name, "s", "CPU ≤ 0.5")
    return rows


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure our broker, print and return the rows."""
    is_smoke = is_smoke_run("What groups of KIP-848 cost their coordinator.", arguments)
    rows = RebalanceRows(is_smoke=is_smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        rows.measure((OURS,), Path(directory), 1)
    report.show(rows.reports, Console(width=180), "Groups of KIP-848")
    return rows.reports


if __name__ == "__main__":
    main()
