"""Records of `__cluster_metadata`: ACLs, SCRAM credentials, delegation tokens, client quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.fields import array, blob, boolean, float64, int8, int32, int64, string, uuid
from protocol.schema import MetadataRecord, Struct

if TYPE_CHECKING:
    from uuid import UUID


class AccessControlEntryRecord(MetadataRecord, record_type=18, versions="0", flexible="0+"):
    """A new ACL (KIP-801)."""

    id: UUID = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    """Such as `User:alice`."""
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(MetadataRecord, record_type=19, versions="0", flexible="0+"):
    """The removal of an ACL."""

    id: UUID = uuid()


class UserScramCredentialRecord(MetadataRecord, record_type=11, versions="0", flexible="0+"):
    """A user's SCRAM credential, in place of an earlier one of the same mechanism (KIP-900)."""

    name: str = string()
    mechanism: int = int8()
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    salt: bytes = blob()
    stored_key: bytes = blob()
    server_key: bytes = blob()
    iterations: int = int32()


class RemoveUserScramCredentialRecord(MetadataRecord, record_type=22, versions="0", flexible="0+"):
    """The removal of a user's SCRAM credential."""

    name: str = string()
    mechanism: int = int8()


class DelegationTokenRecord(MetadataRecord, record_type=10, versions="0", flexible="0+"):
    """A delegation token, in place of an earlier one with its id; times are in ms since 1970."""

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()
    """Its HMAC is computed from it, with `delegation.token.secret.key`."""


class RemoveDelegationTokenRecord(MetadataRecord, record_type=26, versions="0", flexible="0+"):
    """The removal of a delegation token."""

    token_id: str = string()


class ClientQuotaRecord(MetadataRecord, record_type=14, versions="0", flexible="0+"):
    """One limit of one quota entity, set or removed (KIP-546)."""

    class EntityData(Struct):
        """One part of the entity's name."""

        entity_type: str = string()
        """`user`, `client-id` or `ip`."""
        entity_name: str | None = string(nullable="0+")
        """Null for the default of its type."""

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    """Such as `producer_byte_rate`."""
    value: float = float64()
    """Ignored if the limit is removed."""
    remove: bool = boolean()
