"""The topics of a cluster, in memory: the port of consumer groups."""

from __future__ import annotations

from uuid import UUID

from coordinator.topics import TopicView


class FewTopics:
    """Topics that come, grow and go."""

    def __init__(self) -> None:
        self.revision = 1
        self.created_revision = 1
        self._views: dict[str, TopicView] = {}
        self._names: dict[UUID, str] = {}

    def put(self, name: str, partitions: int) -> UUID:
        """Create a topic, or give it more partitions."""
        self.revision += 1
        known = self._views.get(name)
        if known is None:
            self.created_revision = self.revision
        topic_id = UUID(int=100 + len(self._views)) if known is None else known.topic_id
        self._views[name] = TopicView(name, topic_id, partitions, self.revision)
        self._names[topic_id] = name
        return topic_id

    def remove(self, name: str) -> None:
        self.revision += 1
        del self._names[self._views.pop(name).topic_id]

    def find(self, name: str) -> TopicView | None:
        return self._views.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return self._names.get(topic_id)

    def names(self) -> list[str]:
        return list(self._views)

    def racks(self, name: str) -> list[list[str]]:
        return [[] for _ in range(self._views[name].partition_count)]
