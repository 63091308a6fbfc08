"""The image of Apache Kafka's own records: its log and its snapshot give the same one.

What Apache wrote into the snapshot is also what we write of the image, record by record.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from controller.image.loader import MetadataLoader
from controller.image.metadata_image import MetadataImage, Provenance
from controller.image.snapshot import snapshot_records
from protocol.metadata_log.frames import decode_metadata_record, encode_metadata_record
from protocol.metadata_log.node_records import RegisterBrokerRecord, RegisterControllerRecord
from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.processes.waiting import wait_until
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from protocol.schema import MetadataRecord

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

TIMEOUT_SECONDS = 60
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "broker.rack": "r1",
    "metadata.log.max.record.bytes.between.snapshots": "1",
}


@pytest.fixture(scope="module")
def metadata_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`__cluster_metadata-0` of a node on which one of everything was made, and half deleted.

    It is never started again: Apache then replays its log as one delta, and one that creates a
    topic, configures and deletes it leaves the configuration (4.4.0). Ours does not.
    """
    node = apache_4(tmp_path_factory.mktemp("node"), PROPERTIES)
    directory = node.data_directory / "__cluster_metadata-0"
    node.start()
    try:
        make_topics(node.bootstrap)
        make_users(node.bootstrap)
        make_quotas_and_defaults(node.bootstrap)
        before = newest_snapshot(directory)
        assert wait_until(lambda: newest_snapshot(directory) > before, TIMEOUT_SECONDS)
    finally:
        node.stop()
    return directory


def newest_snapshot(directory: Path) -> Path:
    return max(directory.glob("*.checkpoint"))


def make_topics(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    names = ("kept", "gone", "grown")
    made = client.create_topics([NewTopic(name, 3, config={"retention.ms": "1"}) for name in names])
    for future in made.values():
        future.result(TIMEOUT_SECONDS)
    client.delete_topics(["gone"])["gone"].result(TIMEOUT_SECONDS)
    client.create_partitions([NewPartitions("grown", 5)])["grown"].result(TIMEOUT_SECONDS)
    put, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    for kind, name, key, value, operation in (
        (ConfigResource.Type.TOPIC, "kept", "retention.ms", None, delete),
        (ConfigResource.Type.TOPIC, "kept", "min.insync.replicas", "1", put),
        (ConfigResource.Type.BROKER, "0", "log.cleaner.threads", "2", put),
    ):
        entry = ConfigEntry(key, value, incremental_operation=operation)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(TIMEOUT_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "one"})
    producer.init_transactions(TIMEOUT_SECONDS)  # which hands out producer ids


def make_users(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for name in ("alice", "bob"):
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, info, b"secret")
        client.alter_user_scram_credentials([change])[name].result(TIMEOUT_SECONDS)
    gone = UserScramCredentialDeletion("bob", ScramMechanism.SCRAM_SHA_512)
    client.alter_user_scram_credentials([gone])["bob"].result(TIMEOUT_SECONDS)
    for future in client.create_acls([AclBinding(*reading(n)) for n in ("kept", "gone")]).values():
        future.result(TIMEOUT_SECONDS)
    for future in client.delete_acls([AclBindingFilter(*reading("gone"))]).values():
        assert len(future.result(TIMEOUT_SECONDS)) == 1


def reading(topic: str) -> tuple[Any, ...]:
    """What lets a user read a topic."""
    pattern = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL)
    return (*pattern, "User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)


def make_quotas_and_defaults(bootstrap: str) -> None:
    user = "--entity-type users --entity-name alice --entity-type clients --entity-default"
    default = "--entity-type brokers --entity-default"
    tools = Tools(jars.KAFKA_4)
    try:
        for change in (
            f"{user} --add-config producer_byte_rate=1024,request_percentage=12.5",
            f"{user} --delete-config producer_byte_rate",
            f"{default} --add-config message.max.bytes=2000000",
        ):
            words = ("--bootstrap-server", bootstrap, "--alter", *change.split())
            tools.check("configs", *words)
    finally:
        tools.close()


def records_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Offset and value of each record of a file that is no control record."""
    content = path.read_bytes()
    for position, header in iterate_headers(content):
        if not header.is_control:
            batch = content[position : position + header.size_in_bytes]
            for record in iterate_records(batch):
                assert record.value is not None
                yield record.offset, record.value


def decoded(value: bytes) -> MetadataRecord:
    return decode_metadata_record(value)[0]


def image_of_log(directory: Path, end: int) -> MetadataImage:
    """The image at an offset, of the log from its first record on."""
    loader = MetadataLoader()
    for segment in sorted(directory.glob("*.log")):
        for offset, value in records_of(segment):
            if offset < end:
                loader.load_batch([decoded(value)], Provenance(offset, 1, 1))
    assert loader.fault_count == 0
    return loader.image


def image_of_snapshot(path: Path) -> MetadataImage:
    loader = MetadataLoader()
    loader.load_snapshot([decoded(value) for _, value in records_of(path)], Provenance(0, 1, 1))
    assert loader.fault_count == 0
    return loader.image


def test_log_and_snapshot_give_the_same_image(metadata_directory: Path) -> None:
    path = newest_snapshot(metadata_directory)
    end = int(path.name.partition("-")[0])

    of_log, of_snapshot = image_of_log(metadata_directory, end), image_of_snapshot(path)

    for part in MetadataImage.__dataclass_fields__:
        if part != "provenance":
            assert getattr(of_log, part) == getattr(of_snapshot, part), part
    assert {topic.name for topic in of_log.topics.by_id.values()} >= {"kept", "grown"}
    assert len(of_log.acls) == len(of_log.scram_credentials) == len(of_log.client_quotas) == 1


def test_snapshot_is_that_of_apache_record_by_record(metadata_directory: Path) -> None:
    path = newest_snapshot(metadata_directory)
    image = image_of_snapshot(path)

    ours = [encode_metadata_record(*one) for one in snapshot_records(image)]

    theirs = [in_order(value) for _, value in records_of(path)]
    assert Counter(ours) == Counter(theirs)
    assert [kind for kind, _ in groupby(map(kind_of, ours))] == [
        kind for kind, _ in groupby(map(kind_of, theirs))
    ]


def in_order(value: bytes) -> bytes:
    """A record whose features are by name; Apache's are in the order of a hash map."""
    record, version = decode_metadata_record(value)
    if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
        record.features.sort(key=lambda one: one.name)
    return encode_metadata_record(record, version)


def kind_of(value: bytes) -> str:
    name = type(decoded(value)).__name__
    return "topic or partition" if name in {"TopicRecord", "PartitionRecord"} else name
