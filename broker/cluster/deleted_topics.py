"""Removal of deleted topics from a broker's state, on request of the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metadata.metadata_cache import LEADER_DURING_DELETE

if TYPE_CHECKING:
    from broker.coordinators.groups import GroupCoordinators
    from broker.coordinators.share_state.coordinators import ShareStateCoordinators
    from broker.metadata.topic_configs import TopicConfigs
    from protocol.messages.update_metadata import UpdateMetadataRequest
    from storage.directory.directories import LogDirectories


def forget_deleted_topics(
    logs: LogDirectories,
    topic_configs: TopicConfigs,
    groups: GroupCoordinators,
    share_coordinators: ShareStateCoordinators,
    request: UpdateMetadataRequest,
) -> None:
    """Forget committed offsets, share groups' state, configurations, and wanted replicas."""
    deleted = {
        topic.topic_name: topic.topic_id
        for topic in request.topic_states
        if any(state.leader == LEADER_DURING_DELETE for state in topic.partition_states)
    }
    if deleted:
        logs.forget_wanted(deleted.keys())
        topic_configs.forget(deleted.keys())
        groups.topics_deleted(deleted.keys())
        groups.share_topics_deleted(set(deleted.values()))
        share_coordinators.topics_deleted(set(deleted.values()))
