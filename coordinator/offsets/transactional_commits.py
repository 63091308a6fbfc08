"""TxnOffsetCommit: positions that are stored as part of a producer's transaction.

Checked as OffsetCommit (`offset_commits`), except that a request without a member, as those before
version 3, is accepted in every state of the group, and so is a member's that has not received its
assignment yet. A generation of a group that does not exist is an ILLEGAL_GENERATION, from version 6
on GROUP_ID_NOT_FOUND (KIP-1319). A member's session is not prolonged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects, ProducerIdentity
from coordinator.groups.membership import member_error
from coordinator.groups.responses import transactional_storage_error
from coordinator.groups.states import GroupState
from coordinator.offsets.member_commits import KNOWS_GROUP_ERRORS_SINCE
from coordinator.offsets.offset_commits import is_short_enough
from coordinator.offsets.offset_store import CommittedOffset
from coordinator.records import offset_record
from protocol.errors import ErrorCode
from protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

if TYPE_CHECKING:
    from coordinator.groups.group import ClassicGroup
    from coordinator.ports import Reply
    from coordinator.settings import GroupSettings
    from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

TopicResponse = TxnOffsetCommitResponse.Topic
PartitionResponse = TxnOffsetCommitResponse.Topic.Partition


def topic_error(topic: TxnOffsetCommitRequest.Topic, error: ErrorCode) -> TopicResponse:
    """Every partition of a topic refused for the same reason."""
    return TopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            PartitionResponse(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def commit_error(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """Every partition refused for the same reason."""
    return TxnOffsetCommitResponse(topics=[topic_error(topic, error) for topic in request.topics])


class TransactionalCommits:
    """Decides on TxnOffsetCommit requests for the groups of a shard."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings

    def commit(
        self,
        group: ClassicGroup | None,
        request: TxnOffsetCommitRequest,
        api_version: int,
        reply: Reply[TxnOffsetCommitResponse],
        now_ms: int,
    ) -> Effects:
        """Store the positions, to wait for the transaction's marker, or refuse them all."""
        error = _error(group, request, api_version)
        if error is not ErrorCode.NONE:
            return self.refuse(request, error, reply)
        return self.store(request, reply, now_ms)

    @staticmethod
    def refuse(
        request: TxnOffsetCommitRequest, error: ErrorCode, reply: Reply[TxnOffsetCommitResponse]
    ) -> Effects:
        """Refuse all offsets of a caller that may not commit."""
        effects = Effects()
        effects.answer(reply, commit_error(request, error))
        return effects

    def store(
        self, request: TxnOffsetCommitRequest, reply: Reply[TxnOffsetCommitResponse], now_ms: int
    ) -> Effects:
        """Store the offsets of a caller that may commit."""
        effects = Effects()
        effects.producer = ProducerIdentity(request.producer_id, request.producer_epoch)
        response = self._store(request, now_ms, effects)

        def refuse(storage_error: ErrorCode) -> TxnOffsetCommitResponse:
            return commit_error(request, transactional_storage_error(storage_error))

        effects.answer_when_committed(reply, response, refuse)
        return effects

    def _store(
        self, request: TxnOffsetCommitRequest, now_ms: int, effects: Effects
    ) -> TxnOffsetCommitResponse:
        limit = self._settings.offset_metadata_max_bytes
        response = commit_error(request, ErrorCode.NONE)
        for topic, answered in zip(request.topics, response.topics, strict=True):
            for each, answer in zip(topic.partitions, answered.partitions, strict=True):
                metadata = each.committed_metadata or ""
                if not is_short_enough(metadata, limit):
                    answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                committed = CommittedOffset(
                    each.committed_offset, each.committed_leader_epoch, metadata, now_ms
                )
                effects.records.append(
                    offset_record(request.group_id, topic.name, each.partition_index, committed)
                )
        return response


def _error(
    group: ClassicGroup | None, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    generation = request.generation_id_or_member_epoch
    has_generation = generation >= 0
    if group is None:
        if not has_generation:
            return ErrorCode.NONE
        knows = api_version >= KNOWS_GROUP_ERRORS_SINCE
        return ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
    if not has_generation and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    instance_id = request.group_instance_id
    if not has_generation and not request.member_id and instance_id is None:
        return ErrorCode.NONE
    error = member_error(group, request.member_id, instance_id)
    if error is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error
