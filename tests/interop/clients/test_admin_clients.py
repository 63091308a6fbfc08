"""The admin clients of confluent-kafka and kafka-python."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)
from confluent_kafka.cimpl import NewPartitions
from kafka import KafkaAdminClient, KafkaConsumer
from kafka import TopicPartition as PythonTopicPartition
from kafka.admin import NewTopic as PythonNewTopic
from kafka.errors import TopicAlreadyExistsError

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records
from tests.interop.conftest import create_topic, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.conftest import NewName, NewTopicFunction

TIMEOUT = 120.0
JOIN_SECONDS = 30
SPEC: Any = OffsetSpec


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[Any]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield client


def config_of(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return all configs of a topic."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT)
    return {name: entry.value for name, entry in entries.items()}


def test_cluster_is_described(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster(request_timeout=TIMEOUT).result(TIMEOUT)

    (node,) = cluster.nodes
    assert (node.id, f"{node.host}:{node.port}") == (0, bootstrap)
    assert cluster.controller.id == 0
    assert len(cluster.cluster_id) == 22


def test_partitions_are_added_and_topics_deleted(
    admin: AdminClient, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(partitions=2)

    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(TIMEOUT)

    eventually(lambda: len(admin.list_topics(topic, TIMEOUT).topics[topic].partitions) == 4)
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(TIMEOUT)
    admin.delete_topics([topic])[topic].result(TIMEOUT)
    eventually(lambda: topic not in admin.list_topics(timeout=TIMEOUT).topics)
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics([topic])[topic].result(TIMEOUT)


def test_replacing_configs_takes_the_others_back(
    admin: AdminClient, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**{"retention.ms": "60000"})
    assert config_of(admin, topic)["retention.ms"] == "60000"

    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, {"cleanup.policy": "compact"})
    with pytest.warns(DeprecationWarning, match="incremental"):
        replaced = admin.alter_configs([resource])[resource]
    replaced.result(TIMEOUT)

    eventually(lambda: config_of(admin, topic)["cleanup.policy"] == "compact")
    changed = config_of(admin, topic)
    assert changed["retention.ms"] == "604800000"
    assert changed["segment.bytes"] == "1073741824"


def test_single_configs_are_changed_and_the_others_stay(
    admin: AdminClient, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**{"retention.ms": "60000"})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])

    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)

    eventually(lambda: config_of(admin, topic)["cleanup.policy"] == "delete,compact")
    assert config_of(admin, topic)["retention.ms"] == "60000"


def test_a_deleted_and_recreated_topic_is_empty(
    admin: AdminClient, bootstrap: str, new_topic: NewTopicFunction, python_admin: Any
) -> None:
    topic = new_topic()
    confluent.produce(bootstrap, topic, numbered_records(5), Sending())
    before = python_admin.describe_topics([topic])[0]["topic_id"]
    admin.delete_topics([topic])[topic].result(TIMEOUT)

    create_topic(admin, topic, 1)

    spec = {TopicPartition(topic, 0): SPEC.latest()}
    ((_, found),) = admin.list_offsets(spec).items()
    assert found.result(TIMEOUT).offset == 0
    assert python_admin.describe_topics([topic])[0]["topic_id"] != before


def test_offsets_are_listed_and_records_deleted(
    admin: AdminClient, bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic()
    partition = TopicPartition(topic, 0)
    confluent.produce(bootstrap, topic, numbered_records(10), Sending(style="callback"))

    def listed(spec: OffsetSpec) -> int:
        ((_, future),) = admin.list_offsets({partition: spec}).items()
        return int(future.result(TIMEOUT).offset)

    assert (listed(SPEC.earliest()), listed(SPEC.latest())) == (0, 10)
    assert listed(SPEC.max_timestamp()) == 9
    assert listed(SPEC.for_timestamp(BASE_TIMESTAMP_MS + 6)) == 6
    ((_, future),) = admin.delete_records([TopicPartition(topic, 0, 4)]).items()
    assert future.result(TIMEOUT).low_watermark == 4
    assert listed(SPEC.earliest()) == 4


def test_group_offsets_are_listed_altered_and_deleted(
    admin: AdminClient, bootstrap: str, new_topic: NewTopicFunction, new_group: Callable[[], str]
) -> None:
    topic, group = new_topic(), new_group()
    confluent.produce(bootstrap, topic, numbered_records(10), Sending(style="callback"))

    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 6, "by hand")])
    admin.alter_consumer_group_offsets([wanted])[group].result(TIMEOUT)

    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    found = admin.list_consumer_group_offsets([asked])[group].result(TIMEOUT)
    (row,) = found.topic_partitions
    assert (row.topic, row.partition, row.offset, row.metadata) == (topic, 0, 6, "by hand")
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT).result(TIMEOUT)
    assert group in {one.group_id for one in listed.valid}
    admin.delete_consumer_groups([group])[group].result(TIMEOUT)
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT).result(TIMEOUT)
    assert group not in {one.group_id for one in listed.valid}


def _joined(topic: str, config: dict[str, str]) -> KafkaConsumer:
    """A consumer that has partitions.

    One in fifty of kafka-python 3.0.12 joins before it knows its topic and is then never given any,
    on Apache Kafka as here: another one is tried.
    """
    for _ in range(5):
        consumer = KafkaConsumer(topic, **config)
        until = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < until:
            consumer.poll(timeout_ms=100)
            if consumer.assignment():
                return consumer
        consumer.close()
    pytest.fail(f"no consumer is given a partition within {JOIN_SECONDS} s")


def test_active_group_is_described_and_not_deleted(
    python_admin: Any, bootstrap: str, new_topic: NewTopicFunction, new_group: Callable[[], str]
) -> None:
    topic, group = new_topic(partitions=2), new_group()
    config = {"bootstrap_servers": bootstrap, "group_id": group, "client_id": "a-member"}
    with closing(_joined(topic, config)):
        described = python_admin.describe_groups([group])[group]
        refused = python_admin.delete_groups([group])[group]

        assert (described["group_state"], described["protocol_type"]) == ("Stable", "consumer")
        (member,) = described["members"]
        assert member["client_id"] == "a-member"
        assert member["client_host"] == "/127.0.0.1"
        assert member["member_id"].startswith("a-member-")
        assert str(refused) != "OK"
    assert "NonEmptyGroup" in repr(refused) or "NON_EMPTY_GROUP" in repr(refused)


def test_kafka_python_creates_lists_describes_and_deletes_topics(
    python_admin: Any, new_name: NewName
) -> None:
    topic = new_name("python-admin")

    python_admin.create_topics([PythonNewTopic(topic, 3, 1, topic_configs={"retention.ms": "1"})])

    eventually(lambda: topic in python_admin.list_topics())
    (described,) = python_admin.describe_topics([topic])
    assert [one["partition_index"] for one in described["partitions"]] == [0, 1, 2]
    assert {one["leader_id"] for one in described["partitions"]} == {0}
    with pytest.raises(TopicAlreadyExistsError):
        python_admin.create_topics([PythonNewTopic(topic, 3, 1)])
    python_admin.delete_topics([topic])
    eventually(lambda: topic not in python_admin.list_topics())


def test_kafka_python_alters_group_offsets(
    python_admin: Any, bootstrap: str, new_topic: NewTopicFunction, new_group: Callable[[], str]
) -> None:
    from kafka.structs import OffsetAndMetadata

    topic, group = new_topic(), new_group()
    confluent.produce(bootstrap, topic, numbered_records(4), Sending())
    partition = PythonTopicPartition(topic, 0)

    python_admin.alter_group_offsets(group, {partition: OffsetAndMetadata(2, "m", -1)})

    found = python_admin.list_group_offsets({group: None})[group][partition]
    assert (found.offset, found.metadata) == (2, "m")
