"""What all decisions about the share groups of a shard have in common."""

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
    """How many requests have state of a group forgotten now, by group id."""
