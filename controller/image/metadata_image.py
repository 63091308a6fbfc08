"""The state of the cluster at one offset of its metadata log (`MetadataImage`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controller.image.features import METADATA_VERSION, OLDEST_METADATA_VERSION
from controller.image.topics import Topics

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from controller.image.acls import AccessControlEntry
    from controller.image.credentials import DelegationToken, ScramCredential, ScramUser
    from controller.image.nodes import Broker, Controller
    from controller.image.settings import ConfigResource, QuotaEntity

NO_PRODUCER_ID: Final = -1


@dataclass(frozen=True, slots=True)
class Provenance:
    """The last record in an image."""

    offset: int = -1
    epoch: int = -1
    timestamp_ms: int = -1
    """Time at which it was appended to the log."""


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything that the records up to `provenance` say. Mappings are never changed.

    Unlike the records', its parts can be kept: the next image shares those that did not change.
    """

    provenance: Provenance = field(default_factory=Provenance)
    features: Mapping[str, int] = field(default_factory=dict)
    """Finalised level of each feature that has one above 0."""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    controllers: Mapping[int, Controller] = field(default_factory=dict)
    topics: Topics = field(default_factory=Topics)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    next_producer_id: int = NO_PRODUCER_ID
    """First producer id that was not handed out; -1 if none was."""
    acls: Mapping[UUID, AccessControlEntry] = field(default_factory=dict)
    scram_credentials: Mapping[ScramUser, ScramCredential] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)

    @property
    def metadata_version(self) -> int:
        """Level of `metadata.version` in force."""
        return self.features.get(METADATA_VERSION, OLDEST_METADATA_VERSION)


EMPTY: Final = MetadataImage()
