"""Records that wait: how many come in and out each second, how late they are, what they cost.

    python -m tests.benchmarks.messaging.delays [--smoke]

    in and out   records of 100 bytes with a delay, by one producer; each is due at a moment of its
                 own. Lateness is the time from that moment until a consumer has the record.
    waiting      records that are due in an hour: resident memory of the broker before and after,
                 and how long a broker that was killed takes until it has read what waits

Both clients are librdkafka, and share the machine with the broker. Processor time is the broker's.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import create_topic
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.brokers.broker_process import BrokerProcess

VALUE = bytes(100)
RATE = 20_000
DELAY_MS = 3_000
HOUR = b"1h"
FLUSH_SECONDS = 300.0
LOAD_SECONDS = 300.0
MARK = "records that wait"
SLICE_SECONDS = 0.02
ENABLED = {"delivery.delay.enable": "true"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One row."""

    name: str
    value: str


def now_ms() -> float:
    """The wall clock, which the broker goes by."""
    return time.time() * 1000  # noqa: TID251 - a benchmark measures


def producer_of(broker: BrokerProcess) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 2_000_000,
        }
    )


def in_and_out(broker: BrokerProcess, count: int) -> list[Measured]:
    """Send at a steady rate, and read beside that what becomes due."""
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "flow", 1, ENABLED)
    late_ms: list[float] = []
    reading = threading.Thread(target=_read, args=(broker, count, late_ms))
    reading.start()
    producer = producer_of(broker)
    cpu, began = broker.cpu_seconds(), time.perf_counter()
    sent = 0
    while sent < count:
        wanted = min(count, int((time.perf_counter() - began) * RATE))
        for _ in range(wanted - sent):
            at = b"%d" % (now_ms() + DELAY_MS)
            producer.produce("flow", VALUE, headers=[("deliver-at", at)])
        sent = wanted
        producer.poll(SLICE_SECONDS)
    producer.flush(FLUSH_SECONDS)
    took = time.perf_counter() - began
    reading.join()
    late_ms.sort()
    used = broker.cpu_seconds() - cpu
    return [
        Measured("sent with a delay, records/s", f"{count / took:,.0f}"),
        Measured("delivered", f"{len(late_ms):,} of {count:,}"),
        Measured("late by, median, ms", f"{late_ms[len(late_ms) // 2]:.1f}"),
        Measured("late by, p99, ms", f"{late_ms[len(late_ms) * 99 // 100]:.1f}"),
        Measured("late by, most, ms", f"{late_ms[-1]:.1f}"),
        Measured("broker's CPU for each record, in and out, us", f"{used / count * 1e6:.1f}"),
    ]


def waiting(broker: BrokerProcess, count: int) -> list[Measured]:
    """Have records wait, then kill the broker and see how soon it knows them."""
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "rest", 1, ENABLED)
    before = broker.resident_bytes()
    cpu = broker.cpu_seconds()
    producer = producer_of(broker)
    for _ in range(count):
        producer.produce("rest", VALUE, headers=[("deliver-after", HOUR)])
        producer.poll(0)
    assert producer.flush(FLUSH_SECONDS) == 0
    del producer
    used = broker.cpu_seconds() - cpu
    grown = broker.resident_bytes() - before
    broker.kill()
    told = broker.output_path.read_text(encoding="utf-8").count(MARK)
    began = time.perf_counter()
    broker.start()
    while broker.output_path.read_text(encoding="utf-8").count(MARK) == told:
        assert time.perf_counter() - began < LOAD_SECONDS, broker.output_tail()
        time.sleep(SLICE_SECONDS)
    took = time.perf_counter() - began
    return [
        Measured("records that wait", f"{count:,}"),
        Measured("broker's CPU for each, in, us", f"{used / count * 1e6:.1f}"),
        Measured("memory that they add, MB", f"{grown / 1e6:.1f}"),
        Measured("kill -9 until all are known again, s", f"{took:.1f}"),
        Measured("memory after that, MB", f"{broker.resident_bytes() / 1e6:.1f}"),
    ]


def _read(broker: BrokerProcess, count: int, late_ms: list[float]) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "delays",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition("flow", 0, 0)])
    end = time.perf_counter() + FLUSH_SECONDS
    while len(late_ms) < count and time.perf_counter() < end:
        messages = consumer.consume(10_000, 0.005)
        arrived_ms = now_ms()
        late_ms += [
            arrived_ms - message.timestamp()[1] for message in messages if message.error() is None
        ]
    consumer.close()


def main(arguments: Sequence[str] | None = None) -> list[Measured]:
    """Measure what the command line asks for and print it."""
    parser = argparse.ArgumentParser(prog="delays", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="some thousand records")
    options = parser.parse_args(arguments)
    flow, rest = (2_000, 2_000) if options.smoke else (20 * RATE, 1_000_000)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        broker = ours(Path(directory))
        broker.start()
        try:
            rows = [*in_and_out(broker, flow), *waiting(broker, rest)]
            broker.stop()
        finally:
            broker.kill()
    for row in rows:
        print(f"{row.name:48} {row.value:>16}")
    return rows


if __name__ == "__main__":
    main()
