"""SCRAM credentials (KIP-900) and delegation tokens (KIP-48) in the image, and their changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from controller.image.map_delta import MapDelta
from protocol.metadata_log.security_records import DelegationTokenRecord, UserScramCredentialRecord

if TYPE_CHECKING:
    from protocol.metadata_log.security_records import (
        RemoveDelegationTokenRecord,
        RemoveUserScramCredentialRecord,
    )


class ScramUser(NamedTuple):
    """A user, and the mechanism that a credential is for."""

    name: str
    mechanism: int
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The salted keys of one user for one mechanism."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    def to_record(self, user: ScramUser) -> UserScramCredentialRecord:
        """The record of a snapshot."""
        return UserScramCredentialRecord(
            name=user.name,
            mechanism=user.mechanism,
            salt=self.salt,
            stored_key=self.stored_key,
            server_key=self.server_key,
            iterations=self.iterations,
        )


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A delegation token; times are in ms since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int

    def to_record(self, token_id: str) -> DelegationTokenRecord:
        """The record of a snapshot."""
        return DelegationTokenRecord(
            owner=self.owner,
            requester=self.requester,
            renewers=list(self.renewers),
            issue_timestamp=self.issue_timestamp,
            max_timestamp=self.max_timestamp,
            expiration_timestamp=self.expiration_timestamp,
            token_id=token_id,
        )


class ScramDelta(MapDelta[ScramUser, ScramCredential]):
    """Changes of SCRAM credentials. To remove one that is not there is no error, as in Apache."""

    __slots__ = ()

    def put(self, record: UserScramCredentialRecord) -> None:
        """Replay UserScramCredentialRecord."""
        credential = ScramCredential(
            bytes(record.salt),
            bytes(record.stored_key),
            bytes(record.server_key),
            record.iterations,
        )
        self.set(ScramUser(record.name, record.mechanism), credential)

    def drop(self, record: RemoveUserScramCredentialRecord) -> None:
        """Replay RemoveUserScramCredentialRecord."""
        self.remove(ScramUser(record.name, record.mechanism))


class DelegationTokensDelta(MapDelta[str, DelegationToken]):
    """Changes of tokens, by token id. To remove one that is not there is no error, as in Apache."""

    __slots__ = ()

    def put(self, record: DelegationTokenRecord) -> None:
        """Replay DelegationTokenRecord."""
        token = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )
        self.set(record.token_id, token)

    def drop(self, record: RemoveDelegationTokenRecord) -> None:
        """Replay RemoveDelegationTokenRecord."""
        self.remove(record.token_id)
