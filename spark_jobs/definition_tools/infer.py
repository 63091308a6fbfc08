"""Write a definition from a sample of a topic: types, optional fields, nested objects, times.

    python -m spark_jobs infer orders --output orders.toml
    python -m spark_jobs check orders.toml

The sample is the latest records of each partition. Those that are JSON objects are parsed by the
definition without a reject; it is a start to be read and made stricter, with ranges say. Changes in
the envelope of Debezium are recognised. The topic is only read, and no group is joined.
"""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - pydantic evaluates it
from typing import TYPE_CHECKING

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pydantic import Field, PositiveInt

from spark_jobs.definition_tools.inference import inferred
from spark_jobs.errors import JobError, exit_code_of
from spark_jobs.kafka.client_failures import client_failure
from spark_jobs.kafka.reachable import check_reachable
from spark_jobs.options import KafkaOptions, TopicName, parse_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.definition_tools.inference import Sampled

NAME = "infer"
TIMEOUT_SECONDS = 10.0


class InferOptions(KafkaOptions):
    """Options of `infer`."""

    topic: TopicName
    """topic to take a sample of; may stand without --topic"""

    records: PositiveInt = 1_000
    """how many records to look at"""

    output: Path | None = None
    """file to write the definition to; printed when not given"""

    client: dict[str, str] = Field(default={})
    """a setting of librdkafka, e.g. security.protocol=SSL; may be repeated"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the definition; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words and not words[0].startswith("-"):
        words = ["--topic", *words]
    options = parse_options(InferOptions, words, NAME, __doc__)
    check_reachable(options.bootstrap_servers)
    definition = inferred(sample(options), options.topic)
    if options.output is None:
        print(definition, end="")
        return 0
    try:
        options.output.write_text(definition, encoding="utf-8")
    except OSError as error:
        raise JobError(f"{options.output}: {(error.strerror or str(error)).lower()}") from error
    print(f"{NAME}: {options.output} written; python -m spark_jobs check {options.output}")
    return 0


def sample(options: InferOptions) -> list[Sampled]:
    """Return the latest records of a topic, as many of each partition."""
    settings = {"bootstrap.servers": options.bootstrap_servers, "log_level": 0, **options.client}
    own = {"group.id": NAME, "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({**settings, **own})
    try:
        return _sample(consumer, options)
    except KafkaException as error:
        raise client_failure(options.bootstrap_servers, error) from error
    finally:
        consumer.close()


def _sample(consumer: Consumer, options: InferOptions) -> list[Sampled]:
    found = consumer.list_topics(options.topic, timeout=TIMEOUT_SECONDS).topics[options.topic]
    if found.error is not None or not found.partitions:
        raise JobError(f"topic '{options.topic}' is not there: {found.error}")
    most = -(-options.records // len(found.partitions))
    starts, left = [], {}
    for partition in found.partitions:
        place = TopicPartition(options.topic, partition)
        low, high = consumer.get_watermark_offsets(place, timeout=TIMEOUT_SECONDS)
        starts.append(TopicPartition(options.topic, partition, max(low, high - most)))
        left[partition] = high
    consumer.assign(starts)
    records: list[Sampled] = []
    while left:
        message = consumer.poll(TIMEOUT_SECONDS)
        if message is None:
            raise JobError(f"{options.bootstrap_servers} does not answer")
        if message.error() is not None:  # the end of a partition
            left.pop(message.partition() or 0, None)
            continue
        records.append((message.key(), message.value()))
        if (message.offset() or 0) + 1 >= left.get(message.partition() or 0, 0):
            left.pop(message.partition() or 0, None)
    if not records:
        raise JobError(f"topic '{options.topic}' has no records to look at")
    return records


if __name__ == "__main__":
    sys.exit(main())
