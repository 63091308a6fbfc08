"""What a broker forgets of topics when the controller says that they are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metadata.metadata_cache import LEADER_DURING_DELETE

if TYPE_CHECKING:
    from broker.coordinators.groups import GroupCoordinators
    from broker.metadata.topic_configs import TopicConfigs
    from protocol.messages.update_metadata import UpdateMetadataRequest
    from storage.directory.directories import LogDirectories


def forget_deleted_topics(
    logs: LogDirectories,
    topic_configs: TopicConfigs,
    groups: GroupCoordinators,
    request: UpdateMetadataRequest,
) -> None:
    """Forget committed offsets, configurations, and where replicas were wanted."""
    deleted = {
        topic.topic_name
        for topic in request.topic_states
        if any(state.leader == LEADER_DURING_DELETE for state in topic.partition_states)
    }
    if deleted:
        logs.forget_wanted(deleted)
        topic_configs.forget(deleted)
        groups.topics_deleted(deleted)
