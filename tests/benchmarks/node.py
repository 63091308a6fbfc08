"""Throughput of two brokers on one machine, beside one of ours and one of Apache Kafka's.

`python -m tests.benchmarks.node` prints the rows alone; `make bench ARGS="--rows node"` does as
well. All are sent the same: batches over a number of connections, each with a partition of its own
and without replicas, from clients that cost nearly nothing. Nothing else runs meanwhile. On a
machine of two cores the clients take some of what a third core would have.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from tests.benchmarks.measurement import contestants, report
from tests.benchmarks.measurement.canned_frames import (
    Canned,
    error_at_of_produce,
    produce_frame,
    send,
)
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.performance_tools import PerformanceToolError
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.support.brokers.node import Node
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.process_use import use_of
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BROKERS = 2
CALL_SECONDS = 60.0
MEGABYTE = 1_000_000
SMALLEST_COUNTED = 16 * 1024
"""Of smaller batches as many are sent as of these: a GB of 1 KB each would take a minute."""


@dataclass(frozen=True, slots=True)
class Size:
    """Loads to send."""

    loads: tuple[Canned, ...]
    megabytes: int


FULL = Size((Canned(4, 16 * 1024), Canned(16, 16 * 1024), Canned(16, 1024)), megabytes=2000)
SMOKE = Size((Canned(4, 1024),), megabytes=1)


class Contestant(NamedTuple):
    """Brokers that run."""

    bootstrap: str
    ids: Sequence[int]
    ports: Sequence[int]
    pids: Sequence[int]


class NodeRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = SMOKE if is_smoke else FULL
        self._taken: dict[Canned, RowReport] = {}
        self._relative: dict[Canned, RowReport] = {}
        for load in self._size.loads:
            text = f"{load.connections} connections, {load.bytes_each // 1024} KB"
            name = f"{BROKERS} brokers on one machine: canned Produce, {text}"
            self._taken[load] = RowReport(name, "MB/s", "≥ 1.5")
            self._relative[load] = RowReport("the same, relative to one broker", "", "≥ 1.9")

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        pairs = [(self._taken[load], self._relative[load]) for load in self._size.loads]
        return [one for pair in pairs for one in pair]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Measure these makes, in turn."""
        for _ in range(rounds):
            if OURS in makes:
                with _ours(directory, 1) as one:
                    alone = [self._send(one, load) for load in self._size.loads]
                with _ours(directory, BROKERS) as node:
                    for load, before in zip(self._size.loads, alone, strict=True):
                        taken = self._send(node, load)
                        self._taken[load].results[OURS].append(taken)
                        ratio = Result(taken.value / before.value)
                        self._relative[load].results[OURS].append(ratio)
            if APACHE in makes:
                with _apache(directory) as one:
                    for load in self._size.loads:
                        self._taken[load].results[APACHE].append(self._send(one, load))
                        self._relative[load].results[APACHE].append(Result(1.0))  # it is one

    def _send(self, brokers: Contestant, load: Canned) -> Result:
        topic = f"canned-{load.connections}-{load.bytes_each}"
        _create(brokers, topic, load.connections)
        frames: dict[int, list[bytes]] = {port: [] for port in brokers.ports}
        for partition in range(load.connections):
            port = brokers.ports[partition % len(brokers.ports)]
            frames[port].append(produce_frame(topic, partition, load))
            _send_once(port, frames[port][-1], topic)
        size = max(load.bytes_each, SMALLEST_COUNTED)
        each = self._size.megabytes * MEGABYTE // size // len(frames)
        before = use_of(brokers.pids).cpu_seconds
        with ThreadPoolExecutor(len(frames)) as clients:
            error_at = error_at_of_produce(topic)
            sent = [clients.submit(send, port, each, frames[port], error_at) for port in frames]
            reached = [one.result() for one in sent]
        cpu_seconds = use_of(brokers.pids).cpu_seconds - before
        megabytes = sum(one.bytes_sent for one in reached) / MEGABYTE
        rate = megabytes / max(one.seconds for one in reached)
        return Result(rate, rate, cpu_seconds)


@contextmanager
def _ours(directory: Path, count: int) -> Iterator[Contestant]:
    """A node, with a ZooKeeper of its own."""
    place = directory / OURS
    zookeeper = ZooKeeperServer(place / "zookeeper")
    try:
        zookeeper.start()
        with Node(place, {"zookeeper.connect": zookeeper.address}, count=count) as node:
            node.launch()
            node.wait_until_serving()
            pids = [pid for pid in node.pids().values() if pid is not None]
            ports = [node.port_of(process) for process in range(count)]
            yield Contestant(node.bootstrap, node.ids, ports, pids)
    finally:
        zookeeper.kill()
        shutil.rmtree(place)


@contextmanager
def _apache(directory: Path) -> Iterator[Contestant]:
    broker = contestants.build(APACHE, directory / APACHE)
    try:
        broker.start()
        yield Contestant(broker.bootstrap, (), [broker.port], [broker.pid])
    finally:
        broker.kill()
        shutil.rmtree(directory / APACHE)


def _create(brokers: Contestant, topic: str, partitions: int) -> None:
    """Have partition p led by the broker that its frames go to."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
    if brokers.ids:
        places = [[brokers.ids[number % len(brokers.ids)]] for number in range(partitions)]
        new = NewTopic(topic, partitions, replica_assignment=places)
    else:
        new = NewTopic(topic, partitions, 1)
    admin.create_topics([new])[topic].result(CALL_SECONDS)


def _send_once(port: int, frame: bytes, topic: str) -> None:
    """Send a first batch, as soon as the partition is led."""

    def is_taken() -> bool:
        try:
            send(port, 1, [frame], error_at_of_produce(topic))
        except PerformanceToolError:
            return False
        return True

    assert wait_until(is_taken, CALL_SECONDS), f"{topic} has no leaders"


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="node", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a few batches")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=(OURS, APACHE))
    options = parser.parse_args(arguments)
    rows = NodeRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        rows.measure(makes, Path(directory), options.rounds)
    report.show(rows.reports, Console(width=180), "Several brokers on one machine")
    return rows.reports


if __name__ == "__main__":
    main()
