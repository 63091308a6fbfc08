"""Spark's own Kafka source reads committed records only, as a batch and as a stream.

The topic has aborted transactions, plain records between them, and one transaction that stays open
until the stream has read what it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 2
TIMEOUT_SECONDS = 120.0
LONGEST_TRANSACTION_MS = 900_000
"""What brokers allow: Spark may take longer than a minute to see one that is open."""
COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"


class Writer:
    """Writes one value to each partition of the topic, within transactions and without."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self._plain = Producer({"bootstrap.servers": servers})
        settings = {
            "bootstrap.servers": servers,
            "transactional.id": topic,
            "transaction.timeout.ms": LONGEST_TRANSACTION_MS,
        }
        self._transactional = Producer(settings)
        self._transactional.init_transactions(TIMEOUT_SECONDS)

    def plain(self, value: str) -> None:
        self._send(self._plain, value)

    def begin(self, value: str) -> None:
        self._transactional.begin_transaction()
        self._send(self._transactional, value)

    def commit(self) -> None:
        """Commit, and wait until readers see it: the next begins when this one is complete."""
        self._transactional.commit_transaction(TIMEOUT_SECONDS)
        self._wait_until_complete()

    def abort(self) -> None:
        """Abort, and wait until readers see it."""
        self._transactional.abort_transaction(TIMEOUT_SECONDS)
        self._wait_until_complete()

    def _wait_until_complete(self) -> None:
        self._transactional.begin_transaction()
        self._transactional.produce(f"{self.topic}-next", value="", partition=0)
        assert self._transactional.flush(TIMEOUT_SECONDS) == 0
        self._transactional.abort_transaction(TIMEOUT_SECONDS)

    def _send(self, producer: Producer, value: str) -> None:
        for partition in range(PARTITIONS):
            producer.produce(self.topic, value=value, partition=partition)
        assert producer.flush(TIMEOUT_SECONDS) == 0


@pytest.fixture
def writer(servers: str, new_name: Callable[[str], str]) -> Writer:
    """Leave committed, aborted and plain records, and a transaction open."""
    topic = new_name("transactions")
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic(topic, PARTITIONS, 1), NewTopic(f"{topic}-next", 1, 1)]
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_SECONDS)
    writer = Writer(servers, topic)
    for number in range(5):
        writer.begin(f"committed-{number}")
        writer.commit()
        writer.begin(f"aborted-{number}")
        writer.abort()
        writer.plain(f"plain-{number}")
    writer.begin("open")
    writer.plain("behind")
    return writer


def kept() -> list[str]:
    return sorted(
        f"{kind}-{number}"
        for kind in ("committed", "plain")
        for number in range(5)
        for _ in range(PARTITIONS)
    )


def every() -> list[str]:
    aborted = [f"aborted-{number}" for number in range(5)]
    return sorted([*kept(), *[*aborted, "open", "behind"] * PARTITIONS])


def batch(spark: SparkSession, servers: str, topic: str, isolation: str) -> list[str]:
    return values(
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", isolation)
        .option("subscribe", topic)
        .load()
    )


def values(frame: DataFrame) -> list[str]:
    return sorted(row.value.decode() for row in frame.select("value").collect())


def test_batch_reads_what_is_committed(spark: SparkSession, servers: str, writer: Writer) -> None:
    assert batch(spark, servers, writer.topic, COMMITTED) == kept()
    assert batch(spark, servers, writer.topic, UNCOMMITTED) == every()

    writer.abort()

    behind = ["behind"] * PARTITIONS
    assert batch(spark, servers, writer.topic, COMMITTED) == sorted([*kept(), *behind])


def test_stream_reads_what_is_committed_when_it_is(
    spark: SparkSession, servers: str, writer: Writer, tmp_path: Path
) -> None:
    table = writer.topic.replace("-", "_")
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.isolation.level", COMMITTED)
        .option("subscribe", writer.topic)
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.format("memory")
        .queryName(table)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        assert values(spark.table(table)) == kept()

        writer.commit()
        query.processAllAvailable()
        late = ["open", "behind"] * PARTITIONS
        assert values(spark.table(table)) == sorted([*kept(), *late])
    finally:
        query.stop()
