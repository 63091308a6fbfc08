"""DescribeAcls, CreateAcls and DeleteAcls: access control lists, read and changed by clients.

Versions 0 to 3; version 0 knows literal patterns only. Any broker answers, and changes the lists in
the metadata store itself. Without an authorizer there are none: SECURITY_DISABLED.

A request with a word of code 0 (`UNKNOWN`) ends the connection, as Apache Kafka's cannot be parsed
then; other words that this version does not know match nothing, and cannot be created.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from broker.metadata.acls import AclBinding
from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster
from broker.requests.background_answer import answer_later
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.deferred import HangUp
from broker.security.acls.acl_filter import AclFilter
from protocol.acl_types import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.metadata.acls import Acls, Deletion
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from broker.runtime.slices import Slices
    from controller.security.acls import Entries

E = TypeVar("E", bound=IntEnum)

Creation = CreateAclsRequest.Creation
FilterResult = DeleteAclsResponse.FilterResult


@handles(DescribeAclsRequest, versions="0-3")
def describe_acls(
    context: Context, request: DescribeAclsRequest
) -> DescribeAclsResponse | Deferred[DescribeAclsResponse]:
    """List the entries that a filter matches."""
    _require_known_filter(request)
    wanted = _filter(request)

    def refuse(error: ApiError) -> DescribeAclsResponse:
        return DescribeAclsResponse(
            error_code=error.code, error_message=_message(error), resources=[]
        )

    async def work(acls: Acls) -> DescribeAclsResponse:
        found = await acls.matching(wanted)
        response = DescribeAclsResponse(
            error_code=ErrorCode.NONE,
            resources=[
                _described(pattern, entries)
                async for pattern, entries in context.broker.slices().each(found.items())
            ],
        )
        return await encoded_in_slices(context, response)

    try:
        require_on_cluster(context, AclOperation.DESCRIBE)
        acls = _acls(context, "No Authorizer is configured on the broker")
    except ApiError as error:
        return refuse(error)
    return answer_later(context, work(acls), refuse, "describe ACLs")


@handles(CreateAclsRequest, versions="0-3")
def create_acls(
    context: Context, request: CreateAclsRequest
) -> CreateAclsResponse | Deferred[CreateAclsResponse]:
    """Add entries, each with an outcome of its own."""
    for creation in request.creations:
        _require_known(
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        )

    def refuse(error: ApiError) -> CreateAclsResponse:
        return CreateAclsResponse(results=[_created(error)] * len(request.creations))

    async def work(acls: Acls) -> CreateAclsResponse:
        slices = context.broker.slices()
        bindings = [_binding(creation) async for creation in slices.each(request.creations)]
        errors = [_misnamed(binding.pattern) async for binding in slices.each(bindings)]
        named = [one for one, error in zip(bindings, errors, strict=True) if error is None]
        outcomes = iter(await acls.create(named))
        return CreateAclsResponse(
            results=[_created(error or next(outcomes)) async for error in slices.each(errors)]
        )

    try:
        require_on_cluster(context, AclOperation.ALTER)
        acls = _acls(context, "No Authorizer is configured.")
    except ApiError as error:
        return refuse(error)
    return answer_later(context, work(acls), refuse, "create ACLs")


@handles(DeleteAclsRequest, versions="0-3")
def delete_acls(
    context: Context, request: DeleteAclsRequest
) -> DeleteAclsResponse | Deferred[DeleteAclsResponse]:
    """Delete what filters match, and say what that was."""
    for one in request.filters:
        _require_known_filter(one)

    def refuse(error: ApiError) -> DeleteAclsResponse:
        return DeleteAclsResponse(filter_results=[_undeleted(error)] * len(request.filters))

    async def work(acls: Acls) -> DeleteAclsResponse:
        slices = context.broker.slices()
        filters = [_filter(one) async for one in slices.each(request.filters)]
        outcomes = await acls.delete(filters)
        response = DeleteAclsResponse(
            filter_results=[await _deleted(outcome, slices) for outcome in outcomes]
        )
        return await encoded_in_slices(context, response)

    try:
        require_on_cluster(context, AclOperation.ALTER)
        acls = _acls(context, "No Authorizer is configured.")
    except ApiError as error:
        return refuse(error)
    return answer_later(context, work(acls), refuse, "delete ACLs")


def _acls(context: Context, why_not: str) -> Acls:
    acls = context.broker.acls
    if acls is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, why_not)
    return acls


def _filter(sent: DescribeAclsRequest | DeleteAclsRequest.Filter) -> AclFilter:
    """The request's filter."""
    return AclFilter(
        _word(ResourceType, sent.resource_type_filter),
        sent.resource_name_filter,
        _word(PatternType, sent.pattern_type_filter),
        sent.principal_filter,
        sent.host_filter,
        _word(AclOperation, sent.operation),
        _word(PermissionType, sent.permission_type),
    )


def _require_known_filter(sent: DescribeAclsRequest | DeleteAclsRequest.Filter) -> None:
    """Raises HangUp."""
    _require_known(
        sent.resource_type_filter, sent.operation, sent.permission_type, sent.pattern_type_filter
    )


def _binding(sent: Creation) -> AclBinding:
    """The ACL to create. Raises ApiError for values that are valid in filters only."""
    kind = _word(PatternType, sent.resource_pattern_type)
    binding = AclBinding(
        ResourcePattern(_word(ResourceType, sent.resource_type), sent.resource_name, kind),
        AccessControlEntry(
            sent.principal,
            sent.host,
            _word(AclOperation, sent.operation),
            _word(PermissionType, sent.permission_type),
        ),
    )
    words = (binding.pattern.resource_type, kind, *binding.entry[2:])
    if any(word.name in ("ANY", "MATCH") for word in words):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return binding


def _require_known(*codes: int) -> None:
    if 0 in codes:
        raise HangUp("a request about ACLs contains unknown elements")


def _word(words: type[E], code: int) -> E:
    return words(code) if code in words._value2member_map_ else words(0)


def _misnamed(pattern: ResourcePattern) -> ApiError | None:
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    if not pattern.name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    return None


def _described(pattern: ResourcePattern, entries: Entries) -> DescribeAclsResponse.Resource:
    return DescribeAclsResponse.Resource(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        acls=[DescribeAclsResponse.Resource.Acl(**entry._asdict()) for entry in entries],
    )


def _created(error: ApiError | None) -> CreateAclsResponse.Result:
    if error is None:
        return CreateAclsResponse.Result(error_code=ErrorCode.NONE)
    return CreateAclsResponse.Result(error_code=error.code, error_message=_message(error))


def _undeleted(error: ApiError) -> FilterResult:
    return FilterResult(error_code=error.code, error_message=_message(error), matching_acls=[])


async def _deleted(outcome: Iterable[Deletion] | ApiError, slices: Slices) -> FilterResult:
    if isinstance(outcome, ApiError):
        return _undeleted(outcome)
    return FilterResult(
        error_code=ErrorCode.NONE,
        error_message=None,
        matching_acls=[
            FilterResult.MatchingAcl(
                error_code=ErrorCode.NONE if error is None else error.code,
                error_message=None if error is None else _message(error),
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                **entry._asdict(),
            )
            async for (pattern, entry), error in slices.each(outcome)
        ],
    )


def _message(error: ApiError) -> str | None:
    """Message beyond the error code; Apache Kafka sends no general sentences either."""
    return None if error.message == error.code.meaning else error.message
