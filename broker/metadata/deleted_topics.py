"""What a broker forgets of topics when the controller says that they are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metadata.metadata_cache import LEADER_DURING_DELETE

if TYPE_CHECKING:
    from broker.app import Broker
    from protocol.messages.update_metadata import UpdateMetadataRequest


def forget_deleted_topics(broker: Broker, request: UpdateMetadataRequest) -> None:
    """Forget committed offsets, configurations, and where replicas were wanted."""
    deleted = {
        topic.topic_name
        for topic in request.topic_states
        if any(state.leader == LEADER_DURING_DELETE for state in topic.partition_states)
    }
    if deleted:
        broker.logs.forget_wanted(deleted)
        broker.topic_configs.forget(deleted)
        broker.groups.topics_deleted(deleted)
