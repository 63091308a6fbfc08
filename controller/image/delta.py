"""Records replayed on top of an image, and the changes that they make (`MetadataDelta`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controller.image.acls import AclsDelta
from controller.image.credentials import DelegationTokensDelta, ScramDelta
from controller.image.features import FeaturesDelta
from controller.image.metadata_image import NO_PRODUCER_ID, MetadataImage, Provenance
from controller.image.nodes import BrokersDelta, ControllersDelta
from controller.image.settings import ClientQuotasDelta, ConfigsDelta
from controller.image.topics import TopicsDelta
from protocol.metadata_log import log_records, node_records, security_records, topic_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from protocol.schema import MetadataRecord

MAPPINGS: Final = (
    *("features", "brokers", "controllers", "configs", "client_quotas"),
    *("acls", "scram_credentials", "delegation_tokens"),
)
"""Parts of an image, and of a delta, that are plain mappings."""


class MetadataDelta:
    """Changes since `image`: one delta per part.

    With `is_snapshot`, the records are those of a whole snapshot, and the delta also removes what
    is in `image` and not among them (KAFKA-16892).
    """

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "delegation_tokens",
        "features",
        "image",
        "is_snapshot",
        "next_producer_id",
        "scram_credentials",
        "topics",
    )

    def __init__(self, image: MetadataImage, *, is_snapshot: bool = False) -> None:
        self.image = image
        self.is_snapshot = is_snapshot
        self.features = FeaturesDelta(image.features, replaces=is_snapshot)
        self.brokers = BrokersDelta(image.brokers, replaces=is_snapshot)
        self.controllers = ControllersDelta(image.controllers, replaces=is_snapshot)
        self.topics = TopicsDelta(image.topics, replaces=is_snapshot)
        self.configs = ConfigsDelta(image.configs, replaces=is_snapshot)
        self.client_quotas = ClientQuotasDelta(image.client_quotas, replaces=is_snapshot)
        self.next_producer_id = NO_PRODUCER_ID if is_snapshot else image.next_producer_id
        self.acls = AclsDelta(image.acls, replaces=is_snapshot)
        self.scram_credentials = ScramDelta(image.scram_credentials, replaces=is_snapshot)
        self.delegation_tokens = DelegationTokensDelta(
            image.delegation_tokens, replaces=is_snapshot
        )

    def replay(self, record: MetadataRecord) -> None:
        """Replay one record; raises ReplayError, and then nothing has changed.

        The records of metadata transactions (KIP-868) are the loader's and change nothing here.
        """
        REPLAYS[type(record)](self, record)

    def set_all_in_steps(self, image: MetadataImage) -> Iterator[None]:
        """Set all that is in an image, as its records would; to be ended before any is replayed."""
        for part in MAPPINGS:
            getattr(self, part).set_all(getattr(image, part))
        self.next_producer_id = image.next_producer_id
        yield from self.topics.set_all_in_steps(image.topics)

    def prepare_in_steps(self) -> Iterator[None]:
        """Do what of `apply` takes long, so that `apply` does not if it comes next."""
        return self.topics.prepare_in_steps()

    def apply(self, provenance: Provenance) -> MetadataImage:
        """The next image, of which `provenance` describes the last record."""
        return MetadataImage(
            provenance=provenance,
            features=self.features.apply(),
            brokers=self.brokers.apply(),
            controllers=self.controllers.apply(),
            topics=self.topics.apply(),
            configs=self.configs.apply(),
            client_quotas=self.client_quotas.apply(),
            next_producer_id=self.next_producer_id,
            acls=self.acls.apply(),
            scram_credentials=self.scram_credentials.apply(),
            delegation_tokens=self.delegation_tokens.apply(),
        )

    def remove_topic(self, record: topic_records.RemoveTopicRecord) -> None:
        """Replay RemoveTopicRecord: the topic, its partitions and its configuration."""
        self.configs.remove_topic(self.topics.remove(record))

    def hand_out_producer_ids(self, record: log_records.ProducerIdsRecord) -> None:
        """Replay ProducerIdsRecord; that ids only grow is for the controller to hold."""
        self.next_producer_id = record.next_producer_id


def _ignore(delta: MetadataDelta, record: object) -> None:
    """Replay a record that changes no part of the image."""


REPLAYS: Final[Mapping[type[MetadataRecord], Callable[[MetadataDelta, Any], None]]] = {
    log_records.NoOpRecord: _ignore,
    log_records.BeginTransactionRecord: _ignore,
    log_records.EndTransactionRecord: _ignore,
    log_records.AbortTransactionRecord: _ignore,
    log_records.ZkMigrationStateRecord: _ignore,
    log_records.FeatureLevelRecord: lambda delta, one: delta.features.replay(one),
    log_records.ConfigRecord: lambda delta, one: delta.configs.replay(one),
    log_records.ProducerIdsRecord: MetadataDelta.hand_out_producer_ids,
    node_records.RegisterBrokerRecord: lambda delta, one: delta.brokers.register(one),
    node_records.UnregisterBrokerRecord: lambda delta, one: delta.brokers.unregister(one),
    node_records.FenceBrokerRecord: lambda delta, one: delta.brokers.fence(one),
    node_records.UnfenceBrokerRecord: lambda delta, one: delta.brokers.fence(one),
    node_records.BrokerRegistrationChangeRecord: lambda delta, one: delta.brokers.change(one),
    node_records.RegisterControllerRecord: lambda delta, one: delta.controllers.register(one),
    node_records.UnregisterControllerRecord: lambda delta, one: delta.controllers.unregister(one),
    topic_records.TopicRecord: lambda delta, one: delta.topics.create(one),
    topic_records.RemoveTopicRecord: MetadataDelta.remove_topic,
    topic_records.PartitionRecord: lambda delta, one: delta.topics.set_partition(one),
    topic_records.PartitionChangeRecord: lambda delta, one: delta.topics.change_partition(one),
    topic_records.ClearElrRecord: lambda delta, one: delta.topics.clear_elr(one),
    security_records.ClientQuotaRecord: lambda delta, one: delta.client_quotas.replay(one),
    security_records.AccessControlEntryRecord: lambda delta, one: delta.acls.add(one),
    security_records.RemoveAccessControlEntryRecord: lambda delta, one: delta.acls.drop(one),
    security_records.UserScramCredentialRecord: lambda delta, one: delta.scram_credentials.put(one),
    security_records.RemoveUserScramCredentialRecord: (
        lambda delta, one: delta.scram_credentials.drop(one)
    ),
    security_records.DelegationTokenRecord: lambda delta, one: delta.delegation_tokens.put(one),
    security_records.RemoveDelegationTokenRecord: (
        lambda delta, one: delta.delegation_tokens.drop(one)
    ),
}
"""Replay of each type of record. None is left out: a missed one is a wrong image."""
