"""Retention on a running broker: what goes, what stays, and that settings count at once.

With AGAINST=apache these tests ask Apache Kafka itself. Segments of 1 MiB are the smallest that
Apache Kafka 4 takes.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Record, Sending, numbered_records
from tests.interop.conftest import against_apache, create_topic, eventually, patiently

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

TIMEOUT = 120.0
MEBIBYTE = 1 << 20
DAY_MS = 86_400_000
CHECKS_MS = 300
HASTY = {
    "log.retention.check.interval.ms": str(CHECKS_MS),
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "500",
}
SENDING = Sending(style="callback")


@pytest.fixture(scope="module")
def hasty(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """A broker that looks after its logs all the time."""
    process = new_broker(tmp_path_factory.mktemp("hasty"), HASTY)
    process.start()
    yield process
    process.kill()


def bounds(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    """Return the log start offset and high watermark of partition 0."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bounds"})
    found = patiently(lambda: consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT))
    consumer.close()
    assert found is not None
    return found


def configure(broker: BrokerProcess, topic: str, name: str, value: str) -> None:
    """Change one setting of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def a_few_checks() -> None:
    """Let several checks of retention pass."""
    time.sleep(5 * CHECKS_MS / 1000)


def topic_of(broker: BrokerProcess, name: str, **config: str) -> str:
    """Create a topic of one partition."""
    named = {key.replace("_", "."): value for key, value in config.items()}
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), name, 1, named)
    return name


def large_records(count: int, timestamp_ms: int = BASE_TIMESTAMP_MS) -> list[Record]:
    """Records of 100 KB that do not compress."""
    return [Record(0, None, os.urandom(100_000), timestamp_ms) for _ in range(count)]


def files_of(broker: BrokerProcess, topic: str) -> list[Path]:
    """Segments of partition 0, deleted ones too."""
    return sorted((broker.data_directory / f"{topic}-0").glob("*.log*"))


def test_retention_ms_deletes_all_segments_and_applies_at_once(hasty: BrokerProcess) -> None:
    topic = topic_of(hasty, "by-time", retention_ms="-1")
    confluent.produce(hasty.bootstrap, topic, numbered_records(10), SENDING)
    a_few_checks()
    assert bounds(hasty, topic) == (0, 10)

    configure(hasty, topic, "retention.ms", "1000")

    eventually(lambda: bounds(hasty, topic) == (10, 10))
    confluent.produce(hasty.bootstrap, topic, [Record(0, b"k", b"v", 0)], SENDING)
    eventually(lambda: bounds(hasty, topic) == (11, 11))
    eventually(lambda: [path.name for path in files_of(hasty, topic)] == [f"{11:020d}.log"])


def test_records_of_the_future_keep_what_comes_before_them(hasty: BrokerProcess) -> None:
    topic = topic_of(
        hasty, "future", retention_ms="1000", message_timestamp_after_max_ms=str(DAY_MS)
    )
    later = int(time.time() * 1000) + DAY_MS // 2  # noqa: TID251
    records = [Record(0, b"k", b"v", stamp) for stamp in (BASE_TIMESTAMP_MS, later, 5)]

    confluent.produce(hasty.bootstrap, topic, records, SENDING)
    a_few_checks()

    assert bounds(hasty, topic) == (0, 3)


def test_records_of_long_ago_go_at_once_unless_the_time_of_the_append_counts(
    hasty: BrokerProcess,
) -> None:
    old = topic_of(hasty, "long-ago")
    stamped = topic_of(hasty, "long-ago-stamped", message_timestamp_type="LogAppendTime")
    records = [Record(0, b"k", b"v", BASE_TIMESTAMP_MS - 8 * DAY_MS)] * 3

    for topic in (old, stamped):
        confluent.produce(hasty.bootstrap, topic, records, SENDING)

    eventually(lambda: bounds(hasty, old) == (3, 3))
    assert bounds(hasty, stamped) == (0, 3)


def test_retention_bytes_deletes_whole_segments_down_to_the_limit(hasty: BrokerProcess) -> None:
    topic = topic_of(hasty, "by-size", segment_bytes=str(MEBIBYTE))
    for record in large_records(45):  # ten in each segment: the eleventh does not fit
        confluent.produce(hasty.bootstrap, topic, [record], SENDING)
    a_few_checks()
    assert bounds(hasty, topic) == (0, 45)

    configure(hasty, topic, "retention.bytes", str(2_400_000))

    eventually(lambda: bounds(hasty, topic) == (20, 45))
    a_few_checks()
    assert bounds(hasty, topic) == (20, 45)
    eventually(lambda: len(files_of(hasty, topic)) == 3)


def test_compacted_topics_are_left_alone_until_they_delete_as_well(hasty: BrokerProcess) -> None:
    topic = topic_of(hasty, "compacted", cleanup_policy="compact", retention_ms="1000")
    confluent.produce(hasty.bootstrap, topic, numbered_records(5), SENDING)
    a_few_checks()
    assert bounds(hasty, topic) == (0, 5)

    configure(hasty, topic, "cleanup.policy", "compact,delete")

    eventually(lambda: bounds(hasty, topic) == (5, 5))


@pytest.mark.skipif(against_apache(), reason="Apache notes log start offsets once a minute")
def test_nothing_that_was_deleted_comes_back_with_a_crash(own_broker: BrokerProcess) -> None:
    own_broker.start()
    topic = topic_of(own_broker, "crashed")
    confluent.produce(own_broker.bootstrap, topic, numbered_records(20), SENDING)
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    partition = TopicPartition(topic, 0, 13)
    admin.delete_records([partition])[partition].result(TIMEOUT)

    own_broker.kill()
    own_broker.start()

    assert bounds(own_broker, topic) == (13, 20)
    read = confluent.read(own_broker.bootstrap, topic, 7)
    assert [record.without_offset() for record in read] == numbered_records(20)[13:]
