"""Records replayed on an image: what changes, what is refused, and what one broker has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from controller.image.delta import REPLAYS, MetadataDelta
from controller.image.errors import ReplayError
from controller.image.local_replicas import local_replica_changes
from controller.image.metadata_image import EMPTY, MetadataImage, Provenance
from controller.image.settings import ConfigResource
from protocol.metadata_log import log_records as logs
from protocol.metadata_log import node_records as nodes
from protocol.metadata_log import security_records as security
from protocol.metadata_log import topic_records as topics
from protocol.metadata_log.frames import RECORD_TYPES

if TYPE_CHECKING:
    from protocol.schema import MetadataRecord

A, B = UUID(int=101), UUID(int=102)


def partition(topic_id: UUID = A, leader: int = 1) -> topics.PartitionRecord:
    """Partition 0 on brokers 1 and 2, in leader epoch 3 and partition epoch 5."""
    return topics.PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[1, 2],
        isr=[1, 2],
        removing_replicas=[],
        adding_replicas=[],
        leader=leader,
        leader_epoch=3,
        partition_epoch=5,
        directories=[],
    )


def replayed(*records: MetadataRecord, on: MetadataImage = EMPTY) -> MetadataDelta:
    delta = MetadataDelta(on)
    for record in records:
        delta.replay(record)
    return delta


def image_of(*records: MetadataRecord, on: MetadataImage = EMPTY) -> MetadataImage:
    return replayed(*records, on=on).apply(Provenance())


def broker_change(epoch: int) -> nodes.BrokerRegistrationChangeRecord:
    """The end of the fencing of broker 1."""
    return nodes.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=epoch, fenced=-1, in_controlled_shutdown=0, log_dirs=[]
    )


TOPIC = (topics.TopicRecord(name="a", topic_id=A), partition())


def test_every_record_type_has_a_replay() -> None:
    assert REPLAYS.keys() == set(RECORD_TYPES.values())


def test_change_without_leader_keeps_the_leader_epoch() -> None:
    change = topics.PartitionChangeRecord(partition_id=0, topic_id=A, isr=[1])
    (changed,) = image_of(*TOPIC, change).topics.by_id[A].partitions.values()
    assert (changed.isr, changed.replicas, changed.leader) == ((1,), (1, 2), 1)
    assert (changed.leader_epoch, changed.partition_epoch) == (3, 6)


def test_change_that_names_the_same_leader_raises_the_leader_epoch() -> None:
    change = topics.PartitionChangeRecord(partition_id=0, topic_id=A, leader=1)
    (changed,) = image_of(*TOPIC, change).topics.by_id[A].partitions.values()
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (1, 4, 6)


def test_removed_topic_loses_its_configuration() -> None:
    config = logs.ConfigRecord(resource_type=2, resource_name="a", name="k", value="v")
    before = image_of(*TOPIC, config)
    assert before.configs == {ConfigResource(2, "a"): {"k": "v"}}
    after = image_of(topics.RemoveTopicRecord(topic_id=A), on=before)
    assert (after.topics.by_id, after.topics.ids, after.configs) == ({}, {}, {})


def test_topic_created_configured_and_removed_in_one_delta_leaves_no_configuration() -> None:
    """Apache Kafka 4.4.0 leaves it, when it replays its log as it starts."""
    config = logs.ConfigRecord(resource_type=2, resource_name="a", name="k", value="v")
    assert image_of(*TOPIC, config, topics.RemoveTopicRecord(topic_id=A)).configs == {}


def test_topic_deleted_and_created_again_is_deleted_and_led() -> None:
    again = (topics.TopicRecord(name="a", topic_id=B), partition(B))
    delta = replayed(topics.RemoveTopicRecord(topic_id=A), *again, on=image_of(*TOPIC))
    local = local_replica_changes(delta.topics, 1)
    assert [change.topic_id for change in local.deleted] == [A]
    assert [change.topic_id for change in local.elected] == [B]
    assert delta.apply(Provenance()).topics.ids == {"a": B}


def test_topic_created_and_deleted_in_one_delta_leaves_no_change() -> None:
    delta = replayed(*TOPIC, topics.RemoveTopicRecord(topic_id=A))
    assert (delta.topics.created, delta.topics.deleted) == ([], [])
    assert list(delta.topics.partition_changes()) == []


def test_replica_follows_leads_and_goes() -> None:
    before = image_of(*TOPIC)
    moved = topics.PartitionChangeRecord(partition_id=0, topic_id=A, leader=2, replicas=[2, 3])
    delta = replayed(moved, on=before)
    assert len(local_replica_changes(delta.topics, 1).deleted) == 1
    assert len(local_replica_changes(delta.topics, 2).elected) == 1
    assert len(local_replica_changes(delta.topics, 3).followers) == 1
    assert local_replica_changes(delta.topics, 4).deleted == []


def test_snapshot_removes_what_it_does_not_have() -> None:
    config = logs.ConfigRecord(resource_type=4, resource_name="1", name="k", value="v")
    delta = MetadataDelta(image_of(*TOPIC, config), is_snapshot=True)
    delta.replay(topics.TopicRecord(name="a", topic_id=B))
    after = delta.apply(Provenance())
    assert [topic.topic_id for topic in delta.topics.deleted] == [A]
    assert (after.topics.ids, after.configs) == ({"a": B}, {})


def test_parts_without_a_change_are_shared() -> None:
    before = image_of(*TOPIC)
    after = image_of(logs.NoOpRecord(), on=before)
    assert after.topics is before.topics
    assert after.configs is before.configs


def test_clearing_elr_of_all_raises_epochs_of_those_that_have_one() -> None:
    with_elr = partition()
    with_elr.eligible_leader_replicas = [2]
    other = (topics.TopicRecord(name="b", topic_id=B), partition(B))
    image = image_of(TOPIC[0], with_elr, *other, topics.ClearElrRecord(topic_name=""))
    assert image.topics.by_id[A].partitions[0].partition_epoch == 6
    assert image.topics.by_id[A].partitions[0].eligible_leader_replicas == ()
    assert image.topics.by_id[B].partitions[0].partition_epoch == 5


def test_level_zero_removes_a_feature() -> None:
    on = logs.FeatureLevelRecord(name="group.version", feature_level=1)
    off = logs.FeatureLevelRecord(name="group.version", feature_level=0)
    assert image_of(on).features == {"group.version": 1}
    assert image_of(on, off).features == {}


@pytest.mark.parametrize(
    "record",
    [
        topics.RemoveTopicRecord(topic_id=A),
        partition(),
        topics.PartitionChangeRecord(partition_id=0, topic_id=A),
        topics.ClearElrRecord(topic_name="absent"),
        nodes.UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
        nodes.FenceBrokerRecord(id=1, epoch=2),
        nodes.UnfenceBrokerRecord(id=1, epoch=2),
        broker_change(2),
        nodes.UnregisterControllerRecord(controller_id=1),
        security.RemoveAccessControlEntryRecord(id=A),
    ],
)
def test_record_of_what_is_not_there_is_refused_by_type(record: MetadataRecord) -> None:
    with pytest.raises(ReplayError, match=type(record).__name__):
        replayed(record)


def test_broker_change_of_another_epoch_is_refused() -> None:
    registered = nodes.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=A,
        broker_epoch=7,
        end_points=[],
        features=[],
        rack=None,
        log_dirs=[],
    )
    assert not image_of(registered, broker_change(7)).brokers[1].is_fenced
    with pytest.raises(ReplayError, match="epoch 6, but registered with 7"):
        replayed(registered, broker_change(6))
