"""Dependencies of decisions about a shard's share groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections import Counter

    from coordinator.share_groups.groups import ShareGroups
    from coordinator.share_groups.settings import ShareGroupSettings
    from coordinator.share_groups.watches import ShareWatches
    from coordinator.topics import TopicHashes, Topics


class ShareParts(NamedTuple):
    """Parts of a `ShareShard`."""

    settings: ShareGroupSettings
    groups: ShareGroups
    topics: Topics
    hashes: TopicHashes
    watches: ShareWatches
    forgetting: Counter[str]
    """Number of requests in progress that delete state of a group, by group id."""
