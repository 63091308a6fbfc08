"""Dependencies of decisions about consumer groups; one set for each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from coordinator.consumer_groups.groups import ConsumerGroups
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.consumer_groups.watches import ConsumerWatches
    from coordinator.ports import MemberIds
    from coordinator.topics import TopicHashes, Topics


class ShardParts(NamedTuple):
    """The parts of a shard that consumer groups use."""

    settings: ConsumerGroupSettings
    groups: ConsumerGroups
    topics: Topics
    hashes: TopicHashes
    watches: ConsumerWatches
    new_id: MemberIds
