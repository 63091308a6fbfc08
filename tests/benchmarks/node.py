"""What several brokers on one machine take together, beside what one takes (`broker.processes`).

`python -m tests.benchmarks.node` starts a node of one broker and a node of two, in turn, and sends
both the same: batches over a number of connections, each with a partition of its own, from a client
that costs nearly nothing. It goes over the machine's cores, so on a busy machine it says nothing.

    MB/s        of records taken, all brokers together
    CPU         processor seconds of the brokers for a GB of records
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table

from tests.benchmarks.measurement.canned_frames import (
    Canned,
    error_at_of_produce,
    produce_frame,
    send,
)
from tests.benchmarks.measurement.performance_tools import PerformanceToolError
from tests.support.brokers.node import Node
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.process_use import use_of
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC = "canned"
CALL_SECONDS = 60.0
GIGABYTE = 1_000_000_000
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Size:
    """What is sent to each node."""

    brokers: tuple[int, ...] = (1, 2)
    loads: tuple[Canned, ...] = (
        Canned(4, 16 * 1024),
        Canned(16, 16 * 1024),
        Canned(16, 1024),
    )
    megabytes: int = 2000
    """Of records, at most; of small batches, sixty for each of these."""
    rounds: int = 3


FULL = Size()
SMOKE = Size(loads=(Canned(4, 1024),), megabytes=1, rounds=1)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a node took of one load."""

    brokers: int
    load: Canned
    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float


def run(size: Size, directory: Path) -> list[Taken]:
    """Measure all nodes with all loads; each node is there alone."""
    zookeeper = ZooKeeperServer(directory / "zookeeper")
    zookeeper.start()
    found: list[Taken] = []
    try:
        for number in range(size.rounds):
            for count in size.brokers:
                name = f"node-{count}-{number}"
                keys = {"zookeeper.connect": f"{zookeeper.address}/{name}"}
                with Node(directory / name, keys, count=count) as node:
                    node.launch()
                    node.wait_until_serving()
                    found += [_measure(node, load, size.megabytes) for load in size.loads]
                shutil.rmtree(directory / name)
    finally:
        zookeeper.kill()
    return found


def _measure(node: Node, load: Canned, megabytes: int) -> Taken:
    topic = f"{TOPIC}-{load.connections}-{load.bytes_each}"
    _create(node, topic, load.connections)
    frames: dict[int, list[bytes]] = {}
    for partition in range(load.connections):
        port = node.port_of(partition % len(node.ids))
        frame = produce_frame(topic, partition, load)
        _send_once(port, frame, topic)
        frames.setdefault(port, []).append(frame)
    total = min(megabytes * MEGABYTE // load.bytes_each, megabytes * 60)
    error_at = error_at_of_produce(topic)
    pids = [pid for pid in node.pids().values() if pid is not None]
    before = use_of(pids).cpu_seconds
    with ThreadPoolExecutor(len(frames)) as clients:
        reached = list(
            clients.map(
                lambda port: send(port, total // len(frames), frames[port], error_at), frames
            )
        )
    cpu_seconds = use_of(pids).cpu_seconds - before
    sent = sum(one.bytes_sent for one in reached)
    seconds = max(one.seconds for one in reached)
    each_gigabyte = cpu_seconds / (sent / GIGABYTE)
    return Taken(len(node.ids), load, sent / MEGABYTE / seconds, each_gigabyte)


def _create(node: Node, topic: str, partitions: int) -> None:
    """Partition p is led by process p modulo their number."""
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    wanted = [[node.ids[number % len(node.ids)]] for number in range(partitions)]
    new = NewTopic(topic, partitions, replica_assignment=wanted)
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


def show(found: Sequence[Taken], size: Size) -> Table:
    """Medians, and relative to the first node."""
    table = Table("canned Produce", "brokers", "MB/s", "relative", "CPU s per GB", "relative")
    for load in size.loads:
        first: tuple[float, float] | None = None
        for count in size.brokers:
            these = [one for one in found if (one.brokers, one.load) == (count, load)]
            rate = statistics.median(one.megabytes_per_second for one in these)
            cpu = statistics.median(one.cpu_seconds_per_gigabyte for one in these)
            first = first or (rate, cpu)
            what = f"{load.connections} connections, {load.bytes_each // 1024} KB"
            relative = (f"{rate / first[0]:.2f}", f"{cpu / first[1]:.2f}" if first[1] else "")
            cells = (f"{rate:.0f}", relative[0], f"{cpu:.1f}", relative[1])
            table.add_row(what, str(count), *cells)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--megabytes", type=int, default=FULL.megabytes)
    options = parser.parse_args()
    size = Size(rounds=options.rounds, megabytes=options.megabytes)
    directory = Path(tempfile.mkdtemp(prefix="node-"))
    try:
        Console().print(show(run(size, directory), size))
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
