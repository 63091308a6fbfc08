"""Topics in the image, by id and by name, and the changes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.image.errors import ReplayError
from controller.image.map_delta import MapDelta
from controller.image.partitions import Partition
from protocol.metadata_log.topic_records import TopicRecord
from protocol.uuids import to_base64

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from protocol.metadata_log.topic_records import (
        ClearElrRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RemoveTopicRecord,
    )
    from protocol.schema import MetadataRecord

TOPICS_PER_STEP: Final = 100


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions, by partition id."""

    name: str
    topic_id: UUID
    partitions: Mapping[int, Partition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics; names are unique at each offset, ids for ever."""

    by_id: Mapping[UUID, Topic] = field(default_factory=dict)
    ids: Mapping[str, UUID] = field(default_factory=dict)

    def named(self, name: str) -> Topic | None:
        """The topic that has the name, or None."""
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def records(self, partition_version: int) -> Iterator[MetadataRecord]:
        """The records of a snapshot: each topic, followed by its partitions."""
        for topic in self.by_id.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            for number, partition in topic.partitions.items():
                yield partition.to_record(topic.topic_id, number, partition_version)


class PartitionChange(NamedTuple):
    """One partition before and after a delta."""

    topic: str
    topic_id: UUID
    partition_id: int
    before: Partition | None
    """None if the delta created it."""
    after: Partition | None
    """None if the delta removed it."""


class TopicsDelta:
    """Changes of topics. A topic that is deleted and created again is two, by id."""

    __slots__ = ("_names", "_partitions", "_prepared", "_topics", "base")

    def __init__(self, base: Topics, *, replaces: bool = False) -> None:
        self.base = base
        self._names = MapDelta(base.ids, replaces=replaces)
        self._topics = MapDelta(base.by_id, replaces=replaces)
        self._partitions: dict[UUID, MapDelta[int, Partition]] = {}
        """Of topics with a change; the values of `_topics` have their names only."""
        self._prepared: dict[UUID, Topic] = {}
        """Topics of the delta whose values are final until they change again."""

    @property
    def created(self) -> Iterable[Topic]:
        """Topics that are there now and were not before."""
        return [one for one in self._after() if one.topic_id not in self.base.by_id]

    @property
    def changed(self) -> Iterable[Topic]:
        """Topics that were there before and have other partitions, or partitions changed."""
        before = self.base.by_id
        return [
            one for one in self._after() if one.topic_id in before and one != before[one.topic_id]
        ]

    @property
    def deleted(self) -> Iterable[Topic]:
        """Topics that were there before and are no longer, as they were."""
        changes = self._topics.changes
        return [self.base.by_id[key] for key, topic in changes.items() if topic is None]

    def partition_changes(self) -> Iterator[PartitionChange]:
        """Each partition that is another than before; those of deleted topics come first."""
        for topic in self.deleted:
            for number, removed in topic.partitions.items():
                yield PartitionChange(topic.name, topic.topic_id, number, removed, None)
        for topic_id, partitions in self._partitions.items():
            name = self._existing(topic_id).name
            for number, after in partitions.changes.items():
                before = partitions.base.get(number)
                if before != after:
                    yield PartitionChange(name, topic_id, number, before, after)

    def create(self, record: TopicRecord) -> None:
        """Replay TopicRecord."""
        taken = self._names.get(record.name)
        if taken is not None:
            raise ReplayError(f"{_shown(record)}: the name {record.name} has {to_base64(taken)}")
        if self._topics.get(record.topic_id) is not None:
            raise ReplayError(f"{_shown(record)}: the topic exists")
        self._names.set(record.name, record.topic_id)
        self._topics.set(record.topic_id, Topic(record.name, record.topic_id))
        before = self.base.by_id.get(record.topic_id)
        self._prepared.pop(record.topic_id, None)
        self._partitions[record.topic_id] = MapDelta(
            before.partitions if before else {}, replaces=True
        )

    def remove(self, record: RemoveTopicRecord) -> str:
        """Replay RemoveTopicRecord; returns the name, of which the configuration goes too."""
        name = self._topic(record).name
        self._partitions.pop(record.topic_id, None)
        self._prepared.pop(record.topic_id, None)
        self._topics.remove(record.topic_id)
        self._names.remove(name)
        return name

    def set_partition(self, record: PartitionRecord) -> None:
        """Replay PartitionRecord."""
        self._topic(record)
        try:
            partition = Partition.from_record(record)
        except ReplayError as error:
            raise ReplayError(f"{_shown(record)}: {error}") from None
        self._of(record.topic_id).set(record.partition_id, partition)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        """Replay PartitionChangeRecord."""
        self._topic(record)
        partition = self._current(record.topic_id).get(record.partition_id)
        if partition is None:
            raise ReplayError(f"{_shown(record)}: no such partition")
        try:
            changed = partition.changed_by(record)
        except ReplayError as error:
            raise ReplayError(f"{_shown(record)}: {error}") from None
        self._of(record.topic_id).set(record.partition_id, changed)

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Replay ClearElrRecord, for one topic or for all."""
        if record.topic_name:
            topic_id = self._names.get(record.topic_name)
            if topic_id is None:
                raise ReplayError(f"ClearElrRecord: no topic {record.topic_name}")
            topic_ids = [topic_id]
        else:
            topic_ids = list(self._names.apply().values())
        for topic_id in topic_ids:
            for number, partition in self._current(topic_id).apply().items():
                cleared = partition.without_elr()
                if cleared is not partition:
                    self._of(topic_id).set(number, cleared)

    def set_all_in_steps(self, topics: Topics) -> Iterator[None]:
        """Set many topics; to be ended before anything is replayed."""
        self._names.set_all(topics.ids)
        self._topics.set_all(topics.by_id)
        for number, (topic_id, topic) in enumerate(topics.by_id.items(), 1):
            self._of(topic_id).set_all(topic.partitions)
            self._prepared[topic_id] = topic
            if number % TOPICS_PER_STEP == 0:
                yield

    def prepare_in_steps(self) -> Iterator[None]:
        """Do what of `apply` takes long, so that `apply` does not if nothing changes before it."""
        waiting = [key for key in self._partitions if key not in self._prepared]
        for number, topic_id in enumerate(waiting, 1):
            name, partitions = self._existing(topic_id).name, self._partitions[topic_id]
            self._prepared[topic_id] = Topic(name, topic_id, partitions.apply())
            if number % TOPICS_PER_STEP == 0:
                yield

    def apply(self) -> Topics:
        """The next topics; those before if nothing changed."""
        self._after()
        self._topics.set_all(self._prepared)
        by_id = self._topics.apply()
        return self.base if by_id is self.base.by_id else Topics(by_id, self._names.apply())

    def _after(self) -> Iterable[Topic]:
        for _ in self.prepare_in_steps():
            pass
        return self._prepared.values()

    def _of(self, topic_id: UUID) -> MapDelta[int, Partition]:
        """The partitions of a topic, to be changed."""
        self._prepared.pop(topic_id, None)
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            partitions = self._partitions[topic_id] = self._current(topic_id)
        return partitions

    def _current(self, topic_id: UUID) -> MapDelta[int, Partition]:
        partitions = self._partitions.get(topic_id)
        if partitions is not None:
            return partitions
        before = self.base.by_id.get(topic_id)
        return MapDelta(before.partitions if before else {})

    def _existing(self, topic_id: UUID) -> Topic:
        topic = self._topics.get(topic_id)
        assert topic is not None, topic_id
        return topic

    def _topic(self, record: RemoveTopicRecord | PartitionRecord | PartitionChangeRecord) -> Topic:
        topic = self._topics.get(record.topic_id)
        if topic is None:
            raise ReplayError(f"{_shown(record)}: no such topic")
        return topic


def _shown(
    record: TopicRecord | RemoveTopicRecord | PartitionRecord | PartitionChangeRecord,
) -> str:
    shown = f"{type(record).__name__} of {to_base64(record.topic_id)}"
    partition = getattr(record, "partition_id", None)
    return shown if partition is None else f"{shown}-{partition}"
