"""Delegation tokens in the metadata tree: paths and bytes, as Apache Kafka 3.9 writes them.

    /delegation_token/tokens/<token id>                        the token, without its HMAC
    /delegation_token/token_changes/token_change_0000000007    the id of a token that has changed

A token's HMAC is the password of its log-ins. It is computed from the token's id and
`delegation.token.secret.key`, which all brokers share, and is stored nowhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from controller.security.config_entities import sanitized
from controller.znodes import MalformedZnodeError

TOKEN_AUTH = "/delegation_token"  # noqa: S105 - a path
TOKENS = "/delegation_token/tokens"
TOKEN_CHANGES = "/delegation_token/token_changes"  # noqa: S105 - a path
TOKEN_CHANGE_PREFIX = "/delegation_token/token_changes/token_change_"  # noqa: S105 - a path

PERSISTENT_TOKEN_PATHS = (TOKEN_AUTH, TOKEN_CHANGES, TOKENS)
"""Made by the first broker that has a secret key, parents before children."""

VERSION = 3
"""Before version 3 (KIP-373) a token had no requester besides its owner."""
VERSION_OF_REQUESTERS = 3


@dataclass(frozen=True, slots=True)
class DelegationToken:
    """A token, without its HMAC. Principals are as `User:alice`."""

    token_id: str
    owner: str
    requester: str
    """Principal that requested it: the owner, or one that may create tokens for the owner."""
    renewers: tuple[str, ...]
    issue_ms: int
    max_ms: int
    """End of its lifetime, regardless of renewals."""
    expiry_ms: int
    """Expiry unless it is renewed before."""

    @property
    def concerned(self) -> tuple[str, ...]:
        """The principals that own it, requested it or may renew it."""
        return (self.owner, self.requester, *self.renewers)

    def concerns(self, principal: str) -> bool:
        """Return whether the principal is the owner, the requester or a renewer."""
        return principal in (self.owner, self.requester) or principal in self.renewers

    def is_expired(self, now_ms: int) -> bool:
        """Return whether it has expired."""
        return self.max_ms < now_ms or self.expiry_ms < now_ms


def token_path(token_id: str) -> str:
    """Path of a token."""
    return f"{TOKENS}/{token_id}"


def encode_token(token: DelegationToken) -> bytes:
    """Bytes of a token's node, version 3. The order of the keys is that of a hash map in Scala."""
    content = {
        "issueTimestamp": token.issue_ms,
        "renewers": [sanitized(renewer) for renewer in token.renewers],
        "tokenRequester": sanitized(token.requester),
        "tokenId": token.token_id,
        "owner": sanitized(token.owner),
        "expiryTimestamp": token.expiry_ms,
        "maxTimestamp": token.max_ms,
        "version": VERSION,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_token(path: str, data: bytes | None) -> DelegationToken | None:
    """Read a token of any version; None for an empty node. Raises MalformedZnodeError."""
    if not data:
        return None
    try:
        return _token(json.loads(data))
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedZnodeError(f"{path} holds a delegation token that cannot be read") from error


def encode_token_change(token_id: str) -> bytes:
    """Bytes of a notification: the bare id."""
    return token_id.encode()


def decode_token_change(data: bytes | None) -> str:
    """Id of the token that a notification is about."""
    return (data or b"").decode(errors="replace")


def _token(content: dict[str, Any]) -> DelegationToken:
    version = content["version"]
    if not 0 < version <= VERSION:
        raise ValueError(version)
    owner = _principal(content["owner"])
    has_requester = version >= VERSION_OF_REQUESTERS
    return DelegationToken(
        token_id=str(content["tokenId"]),
        owner=owner,
        requester=_principal(content["tokenRequester"]) if has_requester else owner,
        renewers=tuple(_principal(text) for text in content["renewers"]),
        issue_ms=int(content["issueTimestamp"]),
        max_ms=int(content["maxTimestamp"]),
        expiry_ms=int(content["expiryTimestamp"]),
    )


def _principal(text: str) -> str:
    principal = unquote_plus(text)
    if ":" not in principal:
        raise ValueError(principal)
    return principal
