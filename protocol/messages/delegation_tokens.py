"""Delegation tokens (KIP-48)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class CreateDelegationTokenRequest(
    Request, key=ApiKey.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    """Create a delegation token."""

    class Renewer(Struct):
        """A principal that may renew the token."""

        principal_type: str = string()
        principal_name: str = string()

    owner_principal_type: str | None = string("3+", default="", nullable="0+")
    """Null or empty: the token is for the principal that asks (KIP-373)."""
    owner_principal_name: str | None = string("3+", default="", nullable="0+")
    renewers: list[Renewer] = array(Renewer)
    max_lifetime_ms: int = int64()
    """-1 for `delegation.token.max.lifetime.ms`."""


class CreateDelegationTokenResponse(
    Response, request=CreateDelegationTokenRequest, versions="0-3", flexible="2+"
):
    """Answer to CreateDelegationTokenRequest."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+", default="")
    token_requester_principal_name: str = string("3+", default="")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = blob()
    throttle_time_ms: int = int32(default=0)


class RenewDelegationTokenRequest(
    Request, key=ApiKey.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    """Prolong a delegation token."""

    hmac: bytes = blob()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(
    Response, request=RenewDelegationTokenRequest, versions="0-2", flexible="2+"
):
    """Answer to RenewDelegationTokenRequest."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32(default=0)


class ExpireDelegationTokenRequest(
    Request, key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    """Shorten the life of a delegation token, or end it."""

    hmac: bytes = blob()
    expiry_time_period_ms: int = int64()
    """From now; negative ends it at once."""


class ExpireDelegationTokenResponse(
    Response, request=ExpireDelegationTokenRequest, versions="0-2", flexible="2+"
):
    """Answer to ExpireDelegationTokenRequest."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32(default=0)


class DescribeDelegationTokenRequest(
    Request, key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    """List delegation tokens."""

    class Owner(Struct):
        """A principal that owns tokens."""

        principal_type: str = string()
        principal_name: str = string()

    owners: list[Owner] | None = array(Owner, nullable="0+")
    """Null asks for the tokens of all owners."""


class DescribeDelegationTokenResponse(
    Response, request=DescribeDelegationTokenRequest, versions="0-3", flexible="2+"
):
    """Answer to DescribeDelegationTokenRequest."""

    class Token(Struct):
        """A token."""

        class Renewer(Struct):
            """A principal that may renew the token."""

            principal_type: str = string()
            principal_name: str = string()

        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string("3+", default="")
        token_requester_principal_name: str = string("3+", default="")
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = blob()
        renewers: list[Renewer] = array(Renewer)

    error_code: int = int16()
    tokens: list[Token] = array(Token)
    throttle_time_ms: int = int32(default=0)
