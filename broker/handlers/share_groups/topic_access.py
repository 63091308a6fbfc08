"""Partitions of a share group's request by topic id: their names, and whether they may be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.authorization import is_allowed_on_topic
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from uuid import UUID

    from broker.requests.context import Context
    from broker.share_partitions.share_sessions import TopicPartition


class TopicAccess:
    """Asks the authorizer once for each topic of a request."""

    __slots__ = ("_answers", "_context")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers: dict[str, bool] = {}

    def name(self, topic_id: UUID) -> str | None:
        """The topic's name; None if unknown."""
        broker = self._context.broker
        return broker.replicas.names_by_id.get(topic_id) or broker.metadata.topic_name(topic_id)

    def require(self, wanted: TopicPartition) -> str:
        """The name of the topic of a partition that may be read. Raises ApiError."""
        name = self.name(wanted.topic_id)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        may = self._answers.get(name)
        if may is None:
            may = self._answers[name] = is_allowed_on_topic(self._context, AclOperation.READ, name)
        if not may:
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self._context.broker.metadata.partition(name, wanted.partition) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return name
