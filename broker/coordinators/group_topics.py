"""Topics as consumer groups see them: the port `coordinator.topics.Topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.topics import TopicView

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from uuid import UUID

    from broker.metadata.metadata_cache import MetadataCache


class GroupTopics:
    """The broker's metadata, of which consumer groups need no leaders."""

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    @property
    def revision(self) -> int:
        """Grows with every change of anything."""
        return self._metadata.revision

    @property
    def created_revision(self) -> int:
        """The revision in which the latest topic appeared."""
        return self._metadata.created_revision

    def find(self, name: str) -> TopicView | None:
        """A topic by name."""
        topic = self._metadata.topic(name)
        if topic is None:
            return None
        return TopicView(name, topic.topic_id, len(topic.partitions), topic.revision)

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of the topic that has this id."""
        return self._metadata.topic_name(topic_id)

    def names(self) -> Collection[str]:
        """All names."""
        return self._metadata.topics.keys()

    def racks(self, name: str) -> Sequence[Sequence[str]]:
        """For each partition the racks of its replicas, of those brokers that are live."""
        topic = self._metadata.topic(name)
        if topic is None:
            return []
        racks = self._metadata.racks
        return [
            [rack for each in state.replicas if (rack := racks.get(each)) is not None]
            for state in topic.partitions.values()
        ]
