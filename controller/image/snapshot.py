"""The way back: the records of a snapshot of an image, without header and footer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.image.errors import UnwritableMetadataError
from controller.image.features import (
    CONTROLLERS_SINCE,
    DELEGATION_TOKENS_SINCE,
    SCRAM_SINCE,
    RecordVersions,
    feature_records,
)
from controller.image.settings import client_quota_records, config_records
from protocol.metadata_log.log_records import ProducerIdsRecord
from protocol.metadata_log.node_records import RegisterBrokerRecord
from protocol.metadata_log.topic_records import PartitionRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.image.metadata_image import MetadataImage
    from protocol.schema import MetadataRecord


def snapshot_records(image: MetadataImage) -> Iterator[tuple[MetadataRecord, int]]:
    """Each record and the version to write it in, in Apache's order.

    The versions are those of the image's `metadata.version`. Raises UnwritableMetadataError if that
    has no records for something in the image, which no controller lets happen. Nothing is held back
    between two records: a caller may write a long snapshot in slices.
    """
    versions = RecordVersions.at(image.metadata_version)
    of_type = {
        RegisterBrokerRecord: versions.register_broker,
        PartitionRecord: versions.partition,
    }
    for record in _records(image, versions):
        yield record, of_type.get(type(record), 0)


def _records(image: MetadataImage, versions: RecordVersions) -> Iterator[MetadataRecord]:
    _check_writable(image)
    yield from feature_records(image.features)
    for broker in image.brokers.values():
        yield broker.to_record(versions.register_broker)
    for controller in image.controllers.values():
        yield controller.to_record()
    yield from image.topics.records(versions.partition)
    yield from config_records(image.configs)
    yield from client_quota_records(image.client_quotas)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(broker_id=-1, next_producer_id=image.next_producer_id)
    for acl_id, entry in image.acls.items():
        yield entry.to_record(acl_id)
    for user, credential in image.scram_credentials.items():
        yield credential.to_record(user)
    for token_id, token in image.delegation_tokens.items():
        yield token.to_record(token_id)


def _check_writable(image: MetadataImage) -> None:
    for since, part, name in (
        (CONTROLLERS_SINCE, image.controllers, "controllers"),
        (SCRAM_SINCE, image.scram_credentials, "SCRAM credentials"),
        (DELEGATION_TOKENS_SINCE, image.delegation_tokens, "delegation tokens"),
    ):
        if part and image.metadata_version < since:
            raise UnwritableMetadataError(
                f"metadata.version {image.metadata_version} has no records for {name}"
            )
