"""A follower that lags by 1 GiB: how fast it catches up, and what producers notice of it.

`python -m tests.benchmarks.catching_up` prints the rows alone; `make bench ARGS="--rows catch-up"`
does as well. Ours are measured beside Apache Kafka 3.9.1. Three brokers, replication factor 3: one
is killed, a topic is filled, and the broker is started again. Meanwhile somebody produces a steady
trickle of records to another topic with acks=all and notes how long each takes.

The speed is that of the follower's files from their first byte to their last, and is shown as a
share of the speed at which one file after the other is copied on the same disk, by reading and
writing 1 MiB at a time. Files are in the page cache in both cases, and neither waits for the disk.
Both begin after the same rest: on a virtual machine that gives memory back, a new page of a file
costs several times more once memory has lain free for some seconds.
The processor time is that of all three, with the start of the one. Latencies while the follower
catches up are shown as a multiple of those before it was started.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer
from rich.console import Console

from tests.benchmarks.measurement import performance_tools, report
from tests.benchmarks.measurement.contestants import APACHE, OURS
from tests.benchmarks.measurement.report import RowReport
from tests.benchmarks.measurement.rows import Result
from tests.benchmarks.replication import BROKERS, MEGABYTE, Brokers
from tests.support.brokers.broker_process import BrokerError
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from confluent_kafka import Message

PARTITIONS = 3
LAGGING = "lagging"
LIVE = "live"
LAGGARD = BROKERS - 1
CATCHING_UP_SECONDS = 600.0
POLL_SECONDS = 0.005
FLUSH_SECONDS = 60.0
PERCENTILE = 0.99
FEWEST = 20
TRICKLE = {"linger.ms": 1, "acks": "all", "log_level": 0}
TRICKLE_PAUSE_SECONDS = 0.004


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of missing data, and time for which producers are measured before."""

    records: int = 1 << 20
    record_bytes: int = 1024
    quiet_seconds: float = 15.0


FULL = Size()
SMOKE = Size(records=2000, quiet_seconds=0.5)


class CatchingUpRows:
    """The rows of the table that this benchmark fills."""

    def __init__(self, *, is_smoke: bool = False) -> None:
        self._size = size = SMOKE if is_smoke else FULL
        text = f"{size.records * size.record_bytes / (1 << 30):.2g} GiB behind"
        self._speed = RowReport(f"follower {text}, 3.9.1: speed", "of a copy's", "ours ≥ 0.8")
        self._latency = RowReport(
            f"follower {text}, 3.9.1: producers' p99", "of that before", "ours ≤ 1.5"
        )

    @property
    def reports(self) -> list[RowReport]:
        """In the order of the table."""
        return [self._speed, self._latency]

    def measure(self, makes: Sequence[str], directory: Path, rounds: int) -> None:
        """Let a broker of each make fall behind and catch up in turns, `rounds` times."""
        for number, make in product(range(rounds), makes):
            place = directory / f"{make}-{number}"
            with Brokers(make, place) as brokers:
                self._measure_once(brokers, make, place)
            shutil.rmtree(place, ignore_errors=True)

    def _measure_once(self, brokers: Brokers, make: str, place: Path) -> None:
        for topic in (LAGGING, LIVE):
            brokers.create_topic(topic, PARTITIONS)
        laggard = brokers.members[LAGGARD]
        laggard.kill()
        survivors = brokers.members[:LAGGARD]
        bootstrap = ",".join(one.bootstrap for one in survivors)
        fill(bootstrap, self._size)
        wanted = sum(_sizes(survivors[0].data_directory))
        time.sleep(self._size.quiet_seconds)
        copied = copy_speed(survivors[0].data_directory, place / "copy")
        with Trickle(bootstrap) as trickle:
            time.sleep(self._size.quiet_seconds)
            cpu_before = sum(one.cpu_seconds() for one in survivors)
            trickle.end_quiet()
            laggard.launch()
            seconds = watch(laggard.data_directory, wanted, trickle.begin)
            used = sum(one.cpu_seconds() for one in brokers.members) - cpu_before
            trickle.wait_for_some()
        speed = wanted / seconds / MEGABYTE
        self._speed.results[make].append(Result(speed / copied, speed, used))
        self._latency.results[make].append(Result(trickle.slowdown()))


@dataclass
class Trickle:
    """Produces at a steady pace in a thread of its own, and notes latencies."""

    bootstrap: str
    before: list[float] = field(default_factory=list)
    meanwhile: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _is_quiet: bool = True
    _is_catching_up: bool = False
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def end_quiet(self) -> None:
        """From now on the follower starts, which is counted neither way."""
        self._is_quiet = False

    def begin(self) -> None:
        """From now on the follower catches up."""
        self._is_catching_up = True

    def wait_for_some(self) -> None:
        """Wait until some records have been answered since, however short it was."""
        wait_until(lambda: len(self.meanwhile) >= FEWEST or bool(self.failures), FLUSH_SECONDS)

    def slowdown(self) -> float:
        """The 99th percentile of the second part, as a multiple of the first part's."""
        if self.failures:
            raise BrokerError(f"{len(self.failures)} records were not taken: {self.failures[0]}")
        return percentile(self.meanwhile) / percentile(self.before)

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, **TRICKLE})
        value = bytes(1024)
        try:
            while not self._is_over.is_set():
                producer.produce(LIVE, value, on_delivery=self._delivered)
                producer.poll(TRICKLE_PAUSE_SECONDS)
        except (BufferError, KafkaException) as error:
            self.failures.append(str(error))
        if producer.flush(FLUSH_SECONDS):
            self.failures.append("not all are answered")

    def _delivered(self, error: object, message: Message) -> None:
        latency = message.latency()
        if error is not None or latency is None:
            self.failures.append(str(error))
        elif self._is_quiet:
            self.before.append(latency)
        elif self._is_catching_up and not self._is_over.is_set():
            self.meanwhile.append(latency)


def percentile(values: list[float]) -> float:
    """The value that one in a hundred exceeds."""
    if not values:
        raise BrokerError("no record was produced")
    return sorted(values)[int(len(values) * PERCENTILE)]


def fill(bootstrap: str, size: Size) -> None:
    """Produce what the follower will lack."""
    performance_tools.produce(bootstrap, LAGGING, size.records, size.record_bytes)


def watch(data_directory: Path, wanted: int, on_begun: Callable[[], None]) -> float:
    """Seconds from the first byte of the topic that arrives there to the last."""
    at_first = sum(_sizes(data_directory))
    deadline = time.monotonic() + CATCHING_UP_SECONDS
    started = time.monotonic()
    has_begun = False
    while (size := sum(_sizes(data_directory))) < wanted:
        if not has_begun and size > at_first:
            has_begun = True
            on_begun()
        elif not has_begun:
            started = time.monotonic()
        if time.monotonic() > deadline:
            raise BrokerError(f"the follower has {size} of {wanted} bytes, and does not catch up")
        time.sleep(POLL_SECONDS)
    if not has_begun:
        on_begun()
    return time.monotonic() - started


def copy_speed(data_directory: Path, target: Path) -> float:
    """MiB a second at which the topic's files are copied, one after the other."""
    target.mkdir()
    copied = 0
    started = time.monotonic()
    for number, path in enumerate(_files(data_directory)):
        with path.open("rb") as source, (target / str(number)).open("wb") as copy:
            shutil.copyfileobj(source, copy, MEGABYTE)
        copied += path.stat().st_size
    seconds = time.monotonic() - started
    shutil.rmtree(target)
    return copied / seconds / MEGABYTE


def _files(data_directory: Path) -> list[Path]:
    return sorted(data_directory.glob(f"{LAGGING}-*/*.log"))


def _sizes(data_directory: Path) -> list[int]:
    return [path.stat().st_size for path in _files(data_directory)]


def main(arguments: Sequence[str] | None = None) -> list[RowReport]:
    """Measure what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="catching_up", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round")
    parser.add_argument("--only", choices=(OURS, APACHE))
    options = parser.parse_args(arguments)
    rows = CatchingUpRows(is_smoke=options.smoke)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        makes = (options.only,) if options.only else (OURS, APACHE)
        rows.measure(makes, Path(directory), 1 if options.smoke else options.rounds)
    report.show(rows.reports, Console(width=180), "Catching up")
    return rows.reports


if __name__ == "__main__":
    main()
