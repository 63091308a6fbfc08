"""Dependencies of decisions about streams groups; one set for each shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from coordinator.streams_groups.groups import StreamsGroups
    from coordinator.streams_groups.settings import StreamsGroupSettings
    from coordinator.streams_groups.watches import InitialDelays, StreamsWatches
    from coordinator.topics import TopicHashes, Topics


class ShardParts(NamedTuple):
    """The parts of a shard that streams groups use."""

    settings: StreamsGroupSettings
    groups: StreamsGroups
    topics: Topics
    hashes: TopicHashes
    watches: StreamsWatches
    delays: InitialDelays
