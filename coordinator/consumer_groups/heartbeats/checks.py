"""Checks of a ConsumerGroupHeartbeat, before and after its member is looked up.

Messages are those of Apache Kafka, as clients show them to their users.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.modern_groups.checks import check_not_blank, fenced_member, refuse_request
from coordinator.modern_groups.epochs import JOINING_EPOCH, LEAVING_EPOCH, STATIC_LEAVING_EPOCH
from protocol.errors import ApiError, ErrorCode
from protocol.wire import MAX_STRING_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.consumer_groups.member import ConsumerMember, Owned
    from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest

MEMBER_ID_OF_CLIENT_SINCE = 1
"""The version from which on clients choose their member ids (KIP-1082)."""


def check_request(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]
) -> None:
    """Raise ApiError for a request that is invalid regardless of the group."""
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_OF_CLIENT_SINCE or epoch > 0 or epoch == LEAVING_EPOCH:
        check_not_blank(request.member_id, "MemberId can't be empty.")
    check_not_blank(request.group_id, "GroupId can't be empty.")
    check_not_blank(request.instance_id, "InstanceId can't be empty.")
    check_not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == STATIC_LEAVING_EPOCH and request.instance_id is None:
        refuse_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVING_EPOCH:
        refuse_request("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )
    if len((request.member_id or "").encode()) > MAX_STRING_BYTES:
        refuse_request("MemberId is too long.")


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        refuse_request("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        refuse_request("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        refuse_request(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the request has the member's epoch.

    One epoch behind is right if the answer that brought the next one was lost: then it owns
    nothing that it should not.
    """
    epoch = request.member_epoch
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_behind = epoch == member.previous_member_epoch < member.member_epoch
    if is_behind and _owns_no_more(request, member.assigned):
        return
    raise fenced_member("consumer", epoch, member.member_epoch)


def _owns_no_more(request: ConsumerGroupHeartbeatRequest, assigned: Owned) -> bool:
    owned = request.topic_partitions
    return owned is not None and all(
        topic.topic_id in assigned and set(topic.partitions) <= assigned[topic.topic_id].keys()
        for topic in owned
    )
