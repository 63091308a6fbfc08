"""Common parts of requests of the newer kinds of group: their gate, their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from broker.requests.authorization import allowed, is_allowed_on_group
from broker.requests.authorized_operations import authorized_operations
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from controller.features.levels import Feature
    from coordinator.shard import GroupShard

HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)

T = TypeVar("T")


class DescribedGroup(Protocol):
    """A group in a response, of any kind."""

    error_code: int
    authorized_operations: int


class DescribeRequest(Protocol):
    """A request for descriptions, of any kind."""

    group_ids: list[str]
    include_authorized_operations: bool


DescribedT = TypeVar("DescribedT", bound=DescribedGroup)


class Description(NamedTuple, Generic[DescribedT]):
    """Description of the groups of one kind."""

    described: Callable[[GroupShard, str], Steps[DescribedT]]
    not_described: Callable[[str, ErrorCode, str | None], DescribedT]
    topics: Callable[[DescribedT], Collection[str]]
    """The topics that a description names."""
    hidden_topics: str = HIDDEN_TOPICS
    """Error message for a client that may not describe one of them."""


def is_served(context: Context, feature: Feature, protocol: str) -> bool:
    """Return whether the feature is finalised and the protocol enabled.

    The latter by `group.coordinator.rebalance.protocols`.
    """
    broker = context.broker
    is_finalised = broker.features.level(feature) > 0
    return is_finalised and protocol in broker.config.group_coordinator_rebalance_protocols


def check_subscription(context: Context, topics: Collection[str] | None) -> None:
    """Raise ApiError INVALID_REQUEST if a member names too many topics.

    A group looks at all of them at once, and again whenever any topic has changed.
    """
    most = context.broker.config.group_member_max_topics
    if topics is not None and len(topics) > most:
        reason = f"a member subscribes to {len(topics)} topics, group.member.max.topics is {most}"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)


async def finished(context: Context, steps: Steps[T]) -> T:
    """Result of the steps, once they are done; other requests are served between them."""
    slices = context.broker.slices()
    while True:
        await slices.give_way()
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


async def described_groups(
    context: Context, request: DescribeRequest, kind: Description[DescribedT], *, is_served: bool
) -> list[DescribedT]:
    """The groups of a request, each once and with an error of its own."""
    groups, slices = [], context.broker.slices()
    wanted = {group_id: None async for group_id in slices.each(request.group_ids)}
    async for group_id in slices.each(wanted):
        if is_served:
            group = await _described(context, group_id, kind)
        else:
            group = kind.not_described(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = authorized_operations(
                context, ResourceType.GROUP, group_id
            )
        groups.append(group)
    return groups


async def _described(context: Context, group_id: str, kind: Description[DescribedT]) -> DescribedT:
    try:
        if not is_allowed_on_group(context, AclOperation.DESCRIBE, group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        shard = context.broker.groups.shard_for_member(group_id)
    except ApiError as error:
        return kind.not_described(group_id, error.code, None)
    group = await finished(context, kind.described(shard.groups, group_id))
    topics = set(kind.topics(group))
    if allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, topics) != topics:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return kind.not_described(group_id, code, kind.hidden_topics)
    return group
