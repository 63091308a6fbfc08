"""Metadata log and snapshots of Apache Kafka 4.4, read and written again byte for byte."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from protocol.metadata_log.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from protocol.metadata_log.frames import decode_metadata_record, encode_metadata_record
from protocol.metadata_log.log_records import ConfigRecord, FeatureLevelRecord
from protocol.metadata_log.node_records import RegisterBrokerRecord
from protocol.metadata_log.topic_records import PartitionRecord, RemoveTopicRecord, TopicRecord
from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.support.brokers.apache import apache_4
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.records.record import Record
    from protocol.schema import Message

pytestmark = [pytest.mark.interop, pytest.mark.java]

CONTROL_VALUES: dict[int, type[Message]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}


@pytest.fixture(scope="module")
def metadata_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`__cluster_metadata-0` of a node that made, configured and deleted topics."""
    properties = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
    node = apache_4(tmp_path_factory.mktemp("node"), properties)
    directory = node.data_directory / "__cluster_metadata-0"
    node.start()
    try:
        client = AdminClient({"bootstrap.servers": node.bootstrap})
        for name in ("kept", "gone"):
            topic = NewTopic(name, 3, config={"retention.ms": "1000"})
            client.create_topics([topic])[name].result(60)
        client.delete_topics(["gone"])["gone"].result(60)
        assert wait_until(lambda: any(directory.glob("*.checkpoint")), 60)
    finally:
        node.stop()
    return directory


def records_of(path: Path) -> Iterator[tuple[bool, Record]]:
    """Each record of a file of batches, and whether it is a control record."""
    content = path.read_bytes()
    for position, header in iterate_headers(content):
        for record in iterate_records(content[position : position + header.size_in_bytes]):
            yield header.is_control, record


def written_again(is_control: bool, record: Record) -> tuple[Message, bytes]:
    """The message in a record, and the bytes that we make of it."""
    assert record.value is not None
    if not is_control:
        assert record.key is None
        message, version = decode_metadata_record(record.value)
        return message, encode_metadata_record(message, version)
    assert record.key is not None
    _, control_type = struct.unpack(">hh", record.key)
    (version,) = struct.unpack_from(">h", record.value)
    control = CONTROL_VALUES[control_type].decode(version, record.value)
    return control, control.encode(version)


def messages_of(path: Path) -> list[Message]:
    """Every message of a file, each of which we write as Apache did."""
    messages = []
    for is_control, record in records_of(path):
        message, written = written_again(is_control, record)
        assert written == record.value, message
        messages.append(message)
    return messages


def test_log_is_read_and_written_as_apache_wrote_it(metadata_directory: Path) -> None:
    messages = messages_of(metadata_directory / "00000000000000000000.log")

    found = {type(message) for message in messages}
    assert found >= {LeaderChangeMessage, FeatureLevelRecord, RegisterBrokerRecord, ConfigRecord}
    topics = {one.topic_id: one.name for one in messages if isinstance(one, TopicRecord)}
    assert sorted(topics.values()) == ["gone", "kept"]
    partitions = [one for one in messages if isinstance(one, PartitionRecord)]
    assert sorted((topics[one.topic_id], one.partition_id, one.isr) for one in partitions) == [
        (name, number, [0]) for name in ("gone", "kept") for number in range(3)
    ]
    removed = [one for one in messages if isinstance(one, RemoveTopicRecord)]
    assert [topics[one.topic_id] for one in removed] == ["gone"]


def test_snapshot_is_read_and_written_as_apache_wrote_it(metadata_directory: Path) -> None:
    path = max(metadata_directory.glob("*.checkpoint"))

    first, *within, last = messages_of(path)

    assert isinstance(first, SnapshotHeaderRecord)
    assert isinstance(last, SnapshotFooterRecord)
    assert "metadata.version" in {one.name for one in within if isinstance(one, FeatureLevelRecord)}
