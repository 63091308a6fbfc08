"""SCRAM credentials (KIP-554)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeUserScramCredentialsRequest(
    Request, key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """List which SCRAM credentials users have."""

    class User(Struct):
        """A user."""

        name: str = string()

    users: list[User] | None = array(User, nullable="0+")
    """Null or none asks for all."""


class DescribeUserScramCredentialsResponse(
    Response, request=DescribeUserScramCredentialsRequest, versions="0", flexible="0+"
):
    """Answer to DescribeUserScramCredentialsRequest."""

    class Result(Struct):
        """The credentials of one user."""

        class CredentialInfo(Struct):
            """A credential, without its secrets."""

            mechanism: int = int8()
            """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
            iterations: int = int32()

        user: str = string()
        error_code: int = int16()
        """RESOURCE_NOT_FOUND if there are none."""
        error_message: str | None = string(default="", nullable="0+")
        credential_infos: list[CredentialInfo] = array(CredentialInfo)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    results: list[Result] = array(Result)


class AlterUserScramCredentialsRequest(
    Request, key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """Set or delete SCRAM credentials."""

    class Deletion(Struct):
        """A credential to delete."""

        name: str = string()
        mechanism: int = int8()

    class Upsertion(Struct):
        """A credential to set."""

        name: str = string()
        mechanism: int = int8()
        iterations: int = int32()
        """UNACCEPTABLE_CREDENTIAL below 4096 or above 16384."""
        salt: bytes = blob()
        salted_password: bytes = blob()

    deletions: list[Deletion] = array(Deletion)
    upsertions: list[Upsertion] = array(Upsertion)


class AlterUserScramCredentialsResponse(
    Response, request=AlterUserScramCredentialsRequest, versions="0", flexible="0+"
):
    """Answer to AlterUserScramCredentialsRequest."""

    class Result(Struct):
        """Result for one user."""

        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)
