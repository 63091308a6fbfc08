"""Time that tests wait for their broker: `broker.testing` beside Apache Kafka in a JVM.

    python -m tests.benchmarks.embedded.starts [--smoke] [--apache]

Starts are medians of twenty, until the broker answers a client. The first broker of a process takes
longer by what importing it takes, and has a row of its own. Each test of a thousand creates a
topic, sends a record and reads it from the log. With `--apache` Apache Kafka 4 is started the
same way, three times.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from broker.testing import EmbeddedBroker, EmbeddedCluster
from tests.support.brokers.apache import apache_4
from tests.support.jars import KAFKA_4, REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable

STARTS, APACHE_STARTS, SMOKE_STARTS = 20, 3, 1
TESTS, SMOKE_TESTS = 1_000, 10
RECORDS = 100
FIRST = """
import time
began = time.perf_counter()
from broker.testing import EmbeddedBroker
with EmbeddedBroker():
    print(time.perf_counter() - began)
"""


def main(arguments: list[str]) -> None:
    """Measure, and print a table."""
    is_smoke = "--smoke" in arguments
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # our tests' alone, and it costs each process
    starts = SMOKE_STARTS if is_smoke else STARTS
    row("start, on a thread", _median(starts, lambda: EmbeddedBroker().start().stop))
    _process()()  # which may have to compile all that it imports
    row("start, in a process", _median(starts, _process))
    row("start, three brokers", _median(starts, lambda: EmbeddedCluster().start().stop))
    row("start, first of a process", _first())
    for name, (seconds, of_broker) in _clients().items():
        row(f"{RECORDS} records there and back, {name}", seconds)
        row("  of it the broker's thread at work", of_broker)
    count = SMOKE_TESTS if is_smoke else TESTS
    seconds, kilobytes = _tests(count)
    row(f"{count} tests with a topic each", seconds)
    print(f"{'resident, after them':44} {kilobytes / 1024:9.1f} MB")
    if "--apache" in arguments:
        row(f"start, Apache Kafka {KAFKA_4}", _median(APACHE_STARTS, _apache))


def row(what: str, seconds: float) -> None:
    """One line of the table."""
    print(f"{what:44} {seconds * 1000:9.1f} ms")


def _median(count: int, start: Callable[[], Callable[[], object]]) -> float:
    """Of starting so often; `start` returns how it is stopped."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        stop = start()
        times.append(time.perf_counter() - began)
        stop()
    return median(times)


def _process() -> Callable[[], object]:
    return EmbeddedBroker(isolation="process").start().stop


def _apache() -> Callable[[], object]:
    directory = tempfile.TemporaryDirectory()
    broker = apache_4(Path(directory.name))
    broker.start()

    def stop() -> None:
        broker.kill()
        directory.cleanup()

    return stop


def _first() -> float:
    command = [sys.executable, "-c", FIRST]
    return float(subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True).stdout)


def _clients() -> dict[str, tuple[float, float]]:
    """A new topic, records sent and consumed again, by each client: seconds, and the broker's.

    What the broker does not work, the client works or waits: kafka-python, for one, twice sleeps
    100 ms before it asks for the metadata of a topic.
    """
    found = {}
    with EmbeddedBroker() as broker:
        clock = _clock_of_broker()
        for name, there_and_back in (
            ("confluent-kafka", _confluent),
            ("kafka-python", _python),
            ("aiokafka", _aiokafka),
        ):
            there_and_back(broker, "warm-up")
            began, worked = time.perf_counter(), time.clock_gettime(clock)
            there_and_back(broker, f"topic-{name}")
            found[name] = time.perf_counter() - began, time.clock_gettime(clock) - worked
    return found


def _clock_of_broker() -> int:
    """The clock of the processor time of the only broker's thread."""
    (thread,) = (one for one in threading.enumerate() if one.name.startswith("embedded broker"))
    assert thread.ident is not None
    return time.pthread_getcpuclockid(thread.ident)


def _confluent(broker: EmbeddedBroker, topic: str) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    if topic not in broker.topics():
        broker.create_topic(topic)
    address = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**address, "linger.ms": 1})
    for number in range(RECORDS):
        producer.produce(topic, str(number))
    producer.flush(30)
    consumer = Consumer({**address, "group.id": "benchmark"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = 0
    while count < RECORDS:
        message = consumer.poll(10)
        assert message is not None
        count += message.error() is None
    consumer.close()


def _python(broker: EmbeddedBroker, topic: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    if topic not in broker.topics():
        broker.create_topic(topic)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(RECORDS):
        producer.send(topic, str(number).encode())
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    )
    consumer.assign([TopicPartition(topic, 0)])
    for _ in zip(range(RECORDS), consumer, strict=False):
        pass
    consumer.close()


def _aiokafka(broker: EmbeddedBroker, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def there_and_back() -> None:
        address = broker.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=address) as producer:
            sent = [await producer.send(topic, str(n).encode()) for n in range(RECORDS)]
            await asyncio.gather(*sent)
        async with AIOKafkaConsumer(
            bootstrap_servers=address, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            for _ in range(RECORDS):
                await consumer.getone()

    if topic not in broker.topics():
        broker.create_topic(topic)
    asyncio.run(there_and_back())


def _tests(count: int) -> tuple[float, int]:
    """Seconds, and what this process has resident then, in kilobytes."""
    from confluent_kafka import Producer

    began = time.perf_counter()
    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
        for number in range(count):
            topic = f"test-{number}"
            broker.create_topic(topic)
            producer.produce(topic, "one")
            producer.flush(30)
            assert len(broker.records(topic)) == 1
            broker.delete_topic(topic)
        kilobytes = _resident_kilobytes()
    return time.perf_counter() - began, kilobytes


def _resident_kilobytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


if __name__ == "__main__":
    main(sys.argv[1:])
