"""Three brokers of one make with a ZooKeeper, replication factor 3 and acks=all, under load.

`python -m tests.benchmarks.replication` prints the rows alone; `make bench ARGS="--rows
replication"` does as well. Ours are measured beside Apache Kafka 3.9.1, the last that has
ZooKeeper. CPU and memory are those of the three brokers together, without ZooKeeper's.

Both clusters are up all the time and are loaded in turns, after a round for warming up: the time of
a processor that others use as well differs by half from one minute to the next.

Failover is the time that a partition is without a leader for a reason other than the session
timeout: from the moment at which ZooKeeper drops the killed broker's node until both survivors
tell clients of new leaders for all that it led.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient
from rich.console import Console

from tests.benchmarks.measurement import performance_tools, report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Load, Result
from tests.support.brokers.apache import apache_3
from tests.support.brokers.broker_process import BrokerError
from tests.support.brokers.cluster import told_by
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from tests.support.brokers.broker_process import BrokerProcess

BROKERS = 3
PARTITIONS = 3
FAILOVER_PARTITIONS = 90
CALL_SECONDS = 60.0
POLL_SECONDS = 0.005
MEGABYTE = 1 << 20
WARM_UP = -1
"""The number of the round that is not counted."""
SMOKE_RECORDS = 200
SMOKE_PARTITIONS = 6

PROPERTIES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "zookeeper.session.timeout.ms": "6000",
    "log.segment.delete.delay.ms": "1000",
    "auto.leader.rebalance.enable": "false",
}


class Brokers:
    """Three brokers of a make and their ZooKeeper, as a context manager."""

    def __init__(self, make: str, directory: Path) -> None:
        self.zookeeper = ZooKeeperServer(directory / "zookeeper")
        self.members = [
            self._build(make, directory / f"broker-{number}", number) for number in range(BROKERS)
        ]

    def _build(self, make: str, directory: Path, number: int) -> BrokerProcess:
        properties = {**PROPERTIES, "broker.id": str(number)}
        if make == APACHE:
            return apache_3(directory, self.zookeeper.port, properties, as_its_script_does=True)
        return ours(directory, {**properties, "zookeeper.connect": self.zookeeper.address})

    def __enter__(self) -> Self:
        self.zookeeper.start()
        for member in self.members:
            member.start()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()
        self.zookeeper.kill()

    @property
    def bootstrap(self) -> str:
        """All of them."""
        return ",".join(member.bootstrap for member in self.members)

    def cpu_seconds(self) -> float:
        """Return the processor time used by all so far."""
        return sum(member.cpu_seconds() for member in self.members)

    def resident_bytes(self) -> int:
        """Return the memory resident in all now."""
        return sum(member.resident_bytes() for member in self.members)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create it, and wait until all replicas of it are in sync, as all brokers say."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        topic = NewTopic(name, num_partitions=partitions, replication_factor=BROKERS)
        admin.create_topics([topic])[name].result(CALL_SECONDS)
        if not wait_until(lambda: self.is_whole(name, partitions), CALL_SECONDS):
            raise BrokerError(f"{name} is created but not served by all")

    def is_whole(self, topic: str, partitions: int) -> bool:
        """Return whether all brokers report all of the topic's replicas in sync."""
        for member in self.members:
            told = told_by(member.port)
            states = [state for (name, _), state in told.items() if name == topic]
            if len(states) != partitions:
                return False
            if any(leader < 0 or len(isr) != BROKERS for leader, isr, _ in states):
                return False
        return True


class ReplicationRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._is_smoke = is_smoke
        self._loads = [
            (RowReport(f"three brokers, 3.9.1: produce {text}", "records/s", "≥ 1.2"), load)
            for text, load in (
                ("100 B", Load(1_000_000, 100, partitions=PARTITIONS)),
                ("1 KB", Load(200_000, 1024, partitions=PARTITIONS)),
            )
        ]
        self._memory = RowReport("three brokers, 3.9.1: resident memory", "MB", "≤ 0.2")
        self._failover = RowReport("three brokers, 3.9.1: failover", "s", "≤ 1.0")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [*(row for row, _ in self._loads), self._memory, self._failover]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure the makes in turns: a warm-up, the rounds, and as many deaths."""
        with ExitStack() as stack:
            clusters = {
                make: stack.enter_context(Brokers(make, directory / make)) for make in makes
            }
            for number in range(0 if self._is_smoke else WARM_UP, rounds):
                for make in makes if number % 2 else reversed(makes):
                    self._produce(clusters[make], number, make)
            for make, brokers in clusters.items():
                resident = brokers.resident_bytes() / MEGABYTE
                self._memory.results[make].append(Result(resident))
                self._measure_failover(brokers, make, rounds)
        shutil.rmtree(directory, ignore_errors=True)

    def _produce(self, brokers: Brokers, number: int, make: str) -> None:
        for index, (row, load) in enumerate(self._loads):
            topic = f"round-{number}-{index}"
            brokers.create_topic(topic, load.partitions)
            records = SMOKE_RECORDS if self._is_smoke else load.records
            before = brokers.cpu_seconds()
            reached = performance_tools.produce(
                brokers.bootstrap, topic, records, load.record_bytes
            )
            used = brokers.cpu_seconds() - before
            if number != WARM_UP:
                result = Result(reached.records_per_second, reached.megabytes_per_second, used)
                row.results[make].append(result)

    def _measure_failover(self, brokers: Brokers, make: str, rounds: int) -> None:
        topic = "failover"
        partitions = SMOKE_PARTITIONS if self._is_smoke else FAILOVER_PARTITIONS
        brokers.create_topic(topic, partitions)
        for number in range(rounds):
            victim = number % BROKERS
            seconds = kill_and_wait(brokers, victim)
            self._failover.results[make].append(Result(seconds))
            brokers.members[victim].start()
            if not wait_until(lambda: brokers.is_whole(topic, partitions), CALL_SECONDS):
                raise BrokerError(f"broker {victim} of {make} does not catch up")


def kill_and_wait(brokers: Brokers, victim: int, poll_seconds: float = POLL_SECONDS) -> float:
    """Kill a broker; returns the seconds from the end of its session to new leaders everywhere."""
    zookeeper = KazooClient(hosts=brokers.zookeeper.address)
    zookeeper.start()
    gone_at: list[float] = []
    try:
        brokers.members[victim].kill()
        path = f"/brokers/ids/{victim}"
        if zookeeper.exists(path, watch=lambda _: gone_at.append(time.monotonic())) is None:
            raise BrokerError(f"broker {victim} was not registered")
        survivors = [one for one in brokers.members if one.is_running()]
        if not wait_until(lambda: bool(gone_at), CALL_SECONDS):
            raise BrokerError(f"the session of broker {victim} does not end")
        while any(victim in leaders_told_by(one) for one in survivors):
            if time.monotonic() > gone_at[0] + CALL_SECONDS:
                raise BrokerError(f"nobody takes over from broker {victim}")
            time.sleep(poll_seconds)
        return time.monotonic() - gone_at[0]
    finally:
        zookeeper.stop()
        zookeeper.close()


def leaders_told_by(broker: BrokerProcess) -> set[int]:
    """All that lead something; a partition without a leader counts as led by everybody."""
    leaders = {leader for leader, _, _ in told_by(broker.port).values()}
    return leaders if leaders and -1 not in leaders else set(range(BROKERS))


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="replication", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round")
    parser.add_argument("--only", choices=(OURS, APACHE))
    options = parser.parse_args(arguments)
    rows = ReplicationRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        rows.measure(makes, Path(directory) / "clusters", 1 if options.smoke else options.rounds)
    report.show(rows.reports, Console(width=180), "Replication")
    return rows.reports


if __name__ == "__main__":
    main()
