"""An image out of its own snapshot is the same image, for drawn histories of a cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.image.delta import MetadataDelta
from controller.image.errors import ReplayError, UnwritableMetadataError
from controller.image.metadata_image import EMPTY, MetadataImage, Provenance
from controller.image.snapshot import snapshot_records
from protocol.metadata_log import log_records as logs
from protocol.metadata_log import node_records as nodes
from protocol.metadata_log import security_records as security
from protocol.metadata_log import topic_records as topics
from protocol.metadata_log.frames import decode_metadata_record, encode_metadata_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.schema import MetadataRecord, Struct

WHERE = Provenance(9, 1, 1000)
IDS = st.integers(100, 102).map(lambda number: UUID(int=number))
NAMES = st.sampled_from("ab")
BROKERS = st.lists(st.integers(0, 3), max_size=3, unique=True)
SMALL = st.integers(0, 1)
MAYBE_BROKERS = st.none() | BROKERS
DIRECTORIES = st.lists(IDS, min_size=2, max_size=2)


def built(record: type[Struct], **fields: st.SearchStrategy[object]) -> st.SearchStrategy:
    return st.builds(record, **fields)


PARTITION = {"partition_id": SMALL, "topic_id": IDS, "leader_recovery_state": SMALL}
ELR = {"eligible_leader_replicas": MAYBE_BROKERS, "last_known_elr": MAYBE_BROKERS}
EPOCH = st.integers(0, 1)
SCRAM = {"name": NAMES, "mechanism": st.integers(1, 2)}
ENTITY = st.lists(
    built(
        security.ClientQuotaRecord.EntityData,
        entity_type=st.sampled_from(["user", "client-id"]),
        entity_name=st.none() | NAMES,
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda part: part.entity_type,
)
RECORDS = st.one_of(
    built(topics.TopicRecord, name=NAMES, topic_id=IDS),
    built(topics.RemoveTopicRecord, topic_id=IDS),
    built(
        topics.PartitionRecord,
        **PARTITION,
        **ELR,
        replicas=st.just([1, 2]),
        isr=BROKERS,
        adding_replicas=BROKERS,
        removing_replicas=BROKERS,
        leader=st.integers(-1, 2),
        leader_epoch=SMALL,
        partition_epoch=SMALL,
        directories=st.just([]) | DIRECTORIES,
    ),
    built(
        topics.PartitionChangeRecord,
        **PARTITION,
        **ELR,
        isr=MAYBE_BROKERS,
        leader=st.integers(-2, 2),
        replicas=MAYBE_BROKERS,
        directories=st.none() | DIRECTORIES,
    ),
    built(topics.ClearElrRecord, topic_name=st.just("") | NAMES),
    built(
        nodes.RegisterBrokerRecord,
        broker_id=SMALL,
        broker_epoch=EPOCH,
        fenced=st.booleans(),
        rack=st.none() | NAMES,
        in_controlled_shutdown=st.booleans(),
        log_dirs=DIRECTORIES,
        cordoned_log_dirs=st.none() | DIRECTORIES,
    ),
    built(
        nodes.BrokerRegistrationChangeRecord,
        broker_id=SMALL,
        broker_epoch=EPOCH,
        fenced=st.integers(-1, 1),
        in_controlled_shutdown=SMALL,
    ),
    built(nodes.UnregisterBrokerRecord, broker_id=SMALL, broker_epoch=EPOCH),
    built(nodes.RegisterControllerRecord, controller_id=SMALL, incarnation_id=IDS),
    built(nodes.UnregisterControllerRecord, controller_id=SMALL),
    built(
        logs.ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=NAMES,
        name=NAMES,
        value=st.none() | NAMES,
    ),
    built(logs.FeatureLevelRecord, name=NAMES, feature_level=SMALL),
    built(logs.ProducerIdsRecord, next_producer_id=st.integers(0, 5000)),
    built(
        security.ClientQuotaRecord,
        entity=ENTITY,
        key=NAMES,
        value=st.floats(0, 9),
        remove=st.booleans(),
    ),
    built(security.AccessControlEntryRecord, id=IDS, principal=NAMES),
    built(security.RemoveAccessControlEntryRecord, id=IDS),
    built(security.UserScramCredentialRecord, **SCRAM, salt=st.binary(max_size=2)),
    built(security.RemoveUserScramCredentialRecord, **SCRAM),
    built(security.DelegationTokenRecord, token_id=NAMES, renewers=st.lists(NAMES)),
    built(security.RemoveDelegationTokenRecord, token_id=NAMES),
)
LEVEL = logs.FeatureLevelRecord(name="metadata.version", feature_level=33)
START = [LEVEL, topics.TopicRecord(name="a", topic_id=UUID(int=100))]
"""A topic from the start: few drawn histories would come to partitions otherwise."""

HISTORIES = st.lists(RECORDS, min_size=15, max_size=40)


def history(
    records: Iterable[MetadataRecord], on: MetadataImage = EMPTY, *, is_snapshot: bool = False
) -> MetadataImage:
    """The image after those records that can be replayed."""
    delta = MetadataDelta(on, is_snapshot=is_snapshot)
    for record in records:
        with suppress(ReplayError):
            delta.replay(record)
    return delta.apply(WHERE)


def written(image: MetadataImage) -> list[MetadataRecord]:
    """The records of a snapshot, out of their bytes."""
    return [
        decode_metadata_record(encode_metadata_record(record, version))[0]
        for record, version in snapshot_records(image)
    ]


@settings(deadline=None)
@given(HISTORIES, HISTORIES)
def test_snapshot_of_an_image_makes_the_same_image(
    records: list[MetadataRecord], others: list[MetadataRecord]
) -> None:
    image = history([*START, *records])
    assert history(written(image)) == image
    assert history(written(image), history([*START, *others]), is_snapshot=True) == image


@settings(deadline=None)
@given(HISTORIES, st.integers(0, 40))
def test_deltas_in_a_row_make_the_image_of_one_delta(
    records: list[MetadataRecord], cut: int
) -> None:
    first = history([*START, *records[:cut]])
    kept = written(first)
    assert history(records[cut:], first) == history([*START, *records])
    assert written(first) == kept


def test_metadata_version_is_written_first_and_chooses_versions() -> None:
    level = logs.FeatureLevelRecord(name="metadata.version", feature_level=8)
    other = logs.FeatureLevelRecord(name="a", feature_level=1)
    broker = nodes.RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=UUID(int=1),
        broker_epoch=1,
        end_points=[],
        features=[],
        rack=None,
        log_dirs=[],
    )
    found = [
        (type(record), version)
        for record, version in snapshot_records(history([other, broker, level]))
    ]
    assert found[:2] == [(logs.FeatureLevelRecord, 0)] * 2
    assert found[2:] == [(nodes.RegisterBrokerRecord, 2)]
    assert written(history([other, level]))[0] == level


def test_image_that_its_metadata_version_cannot_hold_is_not_written() -> None:
    controller = nodes.RegisterControllerRecord(
        controller_id=1,
        incarnation_id=UUID(int=1),
        zk_migration_ready=False,
        end_points=[],
        features=[],
    )
    image = history([controller])
    with pytest.raises(UnwritableMetadataError, match=r"7 has no records for controllers"):
        list(snapshot_records(image))
