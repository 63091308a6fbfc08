"""DescribeUserScramCredentials and AlterUserScramCredentials: users that can log in with SCRAM.

Version 0 of both (KIP-554). Errors are per user. A user is changed as a whole or not at all, and
one credential at most once in a request; a change of one user does not wait for another. Requests
carry salted passwords, never the passwords themselves. The controller alters; every broker
describes.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.metadata.metadata_watch import not_controller, repeated
from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster
from broker.requests.background_answer import answer_later
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.store_errors import of_store_error
from controller.metadata_store.store import StoreError
from controller.security.config_entities import ConfigEntity
from controller.security.scram_credentials import format_credential
from controller.znodes import MalformedZnodeError
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from protocol.scram_types import MAX_ITERATIONS, ScramMechanism, credential_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from protocol.scram_types import ScramCredential

logger = logging.getLogger(__name__)

Deletion = AlterUserScramCredentialsRequest.Deletion
Upsertion = AlterUserScramCredentialsRequest.Upsertion
Altered = AlterUserScramCredentialsResponse.Result
Described = DescribeUserScramCredentialsResponse.Result

_MECHANISMS = {int(mechanism): mechanism for mechanism in ScramMechanism}
NO_NAME = "Username must not be empty"


class UserChange(NamedTuple):
    """Requested changes of one user."""

    upsertions: list[Upsertion]
    deletions: list[Deletion]


@handles(DescribeUserScramCredentialsRequest, versions="0")
def describe_user_scram_credentials(
    context: Context, request: DescribeUserScramCredentialsRequest
) -> Deferred[DescribeUserScramCredentialsResponse]:
    """Describe the credentials of some users or of all."""

    async def work() -> DescribeUserScramCredentialsResponse:
        require_on_cluster(context, AclOperation.DESCRIBE)
        names = [user.name for user in request.users or ()]
        response = DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.NONE, error_message=None, results=await _describe(context, names)
        )
        return await encoded_in_slices(context, response)

    def refuse(error: ApiError) -> DescribeUserScramCredentialsResponse:
        code, message = error.code, error.message or error.code.meaning
        # Apache Kafka's repeats the error for each user that is named, and names none of them.
        nameless = Described(user="", error_code=code, error_message=message, credential_infos=[])
        return DescribeUserScramCredentialsResponse(
            error_code=code,
            error_message=message,
            results=[nameless] * len(request.users or ()),
        )

    return answer_later(context, work(), refuse, "describe SCRAM credentials")


@handles(AlterUserScramCredentialsRequest, versions="0")
def alter_user_scram_credentials(
    context: Context, request: AlterUserScramCredentialsRequest
) -> Deferred[AlterUserScramCredentialsResponse]:
    """Set and delete credentials; all brokers learn of it at once."""
    changes: dict[str, UserChange] = {}
    slices = context.broker.slices()

    async def work() -> AlterUserScramCredentialsResponse:
        async for user, change in slices.each(_changes(request)):
            before = changes.setdefault(user, UserChange([], []))
            before.deletions.extend(change.deletions)
            before.upsertions.extend(change.upsertions)
        if not context.broker.controller.is_active:
            raise not_controller()
        require_on_cluster(context, AclOperation.ALTER)
        results = [
            _altered(user, await _alter(context, user, change))
            async for user, change in slices.each(changes.items())
        ]
        return AlterUserScramCredentialsResponse(results=results)

    async def refuse(error: ApiError) -> AlterUserScramCredentialsResponse:
        results = [_altered(user, error) async for user in slices.each(changes)]
        return AlterUserScramCredentialsResponse(results=results)

    return answer_later(context, work(), refuse, "alter SCRAM credentials")


def _changes(request: AlterUserScramCredentialsRequest) -> Iterator[tuple[str, UserChange]]:
    """Requested changes by user, one at a time."""
    for deletion in request.deletions:
        yield deletion.name, UserChange([], [deletion])
    for upsertion in request.upsertions:
        yield upsertion.name, UserChange([upsertion], [])


async def _describe(context: Context, names: list[str]) -> list[Described]:
    """Describe these users, or all if there are none, as this broker knows them now."""
    users, twice = context.broker.scram_users, repeated(names)
    found = []
    async for name in context.broker.slices().each(dict.fromkeys(names or users.names)):
        error = _error_in_name(name, is_repeated=name in twice)
        credentials = users.credentials(name)
        if error is None and not credentials:
            text = "Attempt to describe a user credential that does not exist"
            error = ApiError(ErrorCode.RESOURCE_NOT_FOUND, f"{text}: {name}")
        found.append(_described(name, credentials) if error is None else _unknown(name, error))
    return found


def _error_in_name(name: str, *, is_repeated: bool) -> ApiError | None:
    if not name:
        return ApiError(ErrorCode.RESOURCE_NOT_FOUND, NO_NAME)
    if is_repeated:
        text = "Cannot describe SCRAM credentials for the same user twice in a single request"
        return ApiError(ErrorCode.DUPLICATE_RESOURCE, f"{text}: {name}")
    return None


def _described(name: str, credentials: Mapping[ScramMechanism, ScramCredential]) -> Described:
    return Described(
        user=name,
        error_code=ErrorCode.NONE,
        error_message=None,
        credential_infos=[
            Described.CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(credentials.items())
        ],
    )


def _unknown(name: str, error: ApiError) -> Described:
    return Described(
        user=name, error_code=error.code, error_message=error.message, credential_infos=[]
    )


async def _alter(context: Context, user: str, change: UserChange) -> ApiError | None:
    try:
        _check(user, change)
        await context.broker.user_configs.alter(
            ConfigEntity(user=user), partial(_changed_values, change)
        )
    except ApiError as error:
        return error
    except StoreError as error:
        return of_store_error(error)
    except MalformedZnodeError as error:
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    logger.info("credentials of user %s altered by %s", user, context.principal)
    return None


def _check(user: str, change: UserChange) -> None:
    """Refuse what cannot be, whatever the user has now."""
    if not user:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, NO_NAME)
    mechanisms = [deletion.mechanism for deletion in change.deletions]
    mechanisms += [upsertion.mechanism for upsertion in change.upsertions]
    if not _MECHANISMS.keys() >= set(mechanisms):
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    for upsertion in change.upsertions:
        if upsertion.iterations < _MECHANISMS[upsertion.mechanism].min_iterations:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if upsertion.iterations > MAX_ITERATIONS:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if repeated(mechanisms):
        text = "A user credential cannot be altered twice in the same request"
        raise ApiError(ErrorCode.DUPLICATE_RESOURCE, text)


def _changed_values(change: UserChange, before: Mapping[str, str]) -> Mapping[str, str]:
    """All that is set for a user after the change. Raises RESOURCE_NOT_FOUND."""
    values = dict(before)
    for deletion in change.deletions:
        if values.pop(_MECHANISMS[deletion.mechanism].mechanism_name, None) is None:
            text = "Attempt to delete a user credential that does not exist"
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
    for one in change.upsertions:
        mechanism = _MECHANISMS[one.mechanism]
        credential = credential_from(
            mechanism, bytes(one.salted_password), bytes(one.salt), one.iterations
        )
        values[mechanism.mechanism_name] = format_credential(credential)
    return values


def _altered(user: str, error: ApiError | None) -> Altered:
    return Altered(
        user=user,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message or error.code.meaning,
    )
