"""Update of a member from its heartbeat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.consumer_groups.member import ConsumerMember
    from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest


class HeartbeatCaller(NamedTuple):
    """The client of a heartbeat, from its connection."""

    client_id: str
    client_host: str
    may_describe: Callable[[str], bool]
    """Returns whether it may describe a topic: a regular expression matches no others."""


def is_anything(_: str) -> bool:
    """Allow classic members to describe every topic: they have no regular expressions."""
    return True


def updated_member(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: HeartbeatCaller
) -> ConsumerMember:
    """Return the member with the fields of the request; null fields mean no change."""
    changes: dict[str, object] = {}
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        changes["assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        changes["topics"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        changes["pattern"] = request.subscribed_topic_regex
    if member.classic is not None:
        changes["classic"] = None
    is_same_client = (member.client_id, member.client_host) == (
        caller.client_id,
        caller.client_host,
    )
    if is_same_client and not changes:
        return member
    changes |= {"client_id": caller.client_id, "client_host": caller.client_host}
    return replace(member, **changes)  # type: ignore[arg-type]


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the client sends all fields: it may have lost a response."""
    says_topics = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    return (
        request.rebalance_timeout_ms != -1 and says_topics and request.topic_partitions is not None
    )
