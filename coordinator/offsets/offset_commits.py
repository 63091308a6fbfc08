"""OffsetCommit: the right to commit for a group, and the records that are stored.

Without a generation (a consumer that assigns itself, or a tool) a commit is stored if the group is
EMPTY or does not exist yet; a group with members answers UNKNOWN_MEMBER_ID. With one, the caller
must be a member of the present generation; REBALANCE_IN_PROGRESS while COMPLETING_REBALANCE. With
one for a group that does not exist: ILLEGAL_GENERATION, from version 9 on GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects
from coordinator.groups.membership import member_error
from coordinator.groups.responses import offset_storage_error
from coordinator.groups.states import GroupState
from coordinator.offsets.offset_store import NO_EXPIRY_MS, CommittedOffset
from coordinator.records import offset_record
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import OffsetCommitResponse

if TYPE_CHECKING:
    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.rebalance import Rebalance
    from coordinator.ports import Reply
    from coordinator.settings import GroupSettings
    from protocol.messages.offset_commit import OffsetCommitRequest

GROUP_ID_NOT_FOUND_SINCE = 9
NO_TIMESTAMP_MS = -1
LATEST_MS = 2**63 - 1
"""An offset with a longer retention is kept without limit."""

TopicResponse = OffsetCommitResponse.Topic
PartitionResponse = OffsetCommitResponse.Topic.Partition


def topic_error(topic: OffsetCommitRequest.Topic, error: ErrorCode) -> TopicResponse:
    """Every partition of a topic refused for the same reason."""
    return TopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            PartitionResponse(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def commit_error(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Every partition refused for the same reason."""
    return OffsetCommitResponse(topics=[topic_error(topic, error) for topic in request.topics])


class OffsetCommits:
    """Decides on OffsetCommit requests for the groups of a shard."""

    def __init__(self, settings: GroupSettings, rebalance: Rebalance) -> None:
        self._settings = settings
        self._rebalance = rebalance

    def commit(
        self,
        group: ClassicGroup | None,
        request: OffsetCommitRequest,
        api_version: int,
        reply: Reply[OffsetCommitResponse],
        now_ms: int,
    ) -> Effects:
        """Store the positions, or refuse them all."""
        error = _commit_error(group, request, api_version)
        if (
            group is not None
            and request.member_id in group.members
            and (error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS))
        ):
            self._rebalance.touch(group, group.members[request.member_id])
        if error is not ErrorCode.NONE:
            return self.refuse(request, error, reply)
        return self.store(request, reply, now_ms)

    @staticmethod
    def refuse(
        request: OffsetCommitRequest, error: ErrorCode, reply: Reply[OffsetCommitResponse]
    ) -> Effects:
        """Refuse all offsets of a caller that may not commit."""
        effects = Effects()
        effects.answer(reply, commit_error(request, error))
        return effects

    def store(
        self, request: OffsetCommitRequest, reply: Reply[OffsetCommitResponse], now_ms: int
    ) -> Effects:
        """Store the offsets of a caller that may commit."""
        effects = Effects()
        response = self._store(request, now_ms, effects)

        def refuse(storage_error: ErrorCode) -> OffsetCommitResponse:
            return commit_error(request, offset_storage_error(storage_error))

        effects.answer_when_committed(reply, response, refuse)
        return effects

    def _store(
        self, request: OffsetCommitRequest, now_ms: int, effects: Effects
    ) -> OffsetCommitResponse:
        expire_ms = NO_EXPIRY_MS
        if request.retention_time_ms >= 0:
            expire_ms = min(now_ms + request.retention_time_ms, LATEST_MS)
        response = commit_error(request, ErrorCode.NONE)
        limit = self._settings.offset_metadata_max_bytes
        for topic, answered in zip(request.topics, response.topics, strict=True):
            for each, answer in zip(topic.partitions, answered.partitions, strict=True):
                if not is_short_enough(each.committed_metadata or "", limit):
                    answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                committed = _committed(each, now_ms, expire_ms)
                effects.records.append(
                    offset_record(request.group_id, topic.name, each.partition_index, committed)
                )
        return response


def is_short_enough(metadata: str, limit: int) -> bool:
    """Return whether metadata may be stored; Java counts its length in UTF-16 units."""
    if 2 * len(metadata) <= limit:
        return True
    return len(metadata.encode("utf-16-le", "surrogatepass")) <= 2 * limit


def _committed(
    position: OffsetCommitRequest.Topic.Partition, now_ms: int, expire_ms: int
) -> CommittedOffset:
    timestamp_ms = position.commit_timestamp
    return CommittedOffset(
        position.committed_offset,
        position.committed_leader_epoch,
        position.committed_metadata or "",
        now_ms if timestamp_ms == NO_TIMESTAMP_MS else timestamp_ms,
        expire_ms,
    )


def _commit_error(
    group: ClassicGroup | None, request: OffsetCommitRequest, api_version: int
) -> ErrorCode:
    has_generation = request.generation_id_or_member_epoch >= 0
    if group is None:
        if not has_generation:
            return ErrorCode.NONE
        is_new = api_version >= GROUP_ID_NOT_FOUND_SINCE
        return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION
    if not has_generation and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    return _member_commit_error(group, request)


def _member_commit_error(group: ClassicGroup, request: OffsetCommitRequest) -> ErrorCode:
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id_or_member_epoch != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
