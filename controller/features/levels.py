"""The features of this broker and the levels it supports.

A finalised level is a promise about all brokers: `group.version` 1, that each coordinates consumer
groups of the newer protocol, `transaction.version` 2, that clients may omit AddPartitionsToTxn and
that each end of a transaction raises their epoch (KIP-890). `metadata.version` and `kraft.version`
concern Apache Kafka's metadata log, which does not exist here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Feature(NamedTuple):
    """One feature and its levels."""

    name: str
    first: int
    """The lowest level supported; 0 is without the feature."""
    last: int
    """The highest level supported."""


GROUP_VERSION: Final = Feature("group.version", 0, 1)
"""Consumer groups of the newer protocol (KIP-848)."""

SHARE_VERSION: Final = Feature("share.version", 0, 1)
"""Share groups (KIP-932)."""

STREAMS_VERSION: Final = Feature("streams.version", 0, 1)
"""Streams groups (KIP-1071)."""

TRANSACTION_VERSION: Final = Feature("transaction.version", 0, 2)
"""From 1 on, records of transactions are of the flexible format; 2 is KIP-890."""

FEATURES: Final = (GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION, TRANSACTION_VERSION)
"""By name. None of them depends on another, as in Apache Kafka."""

NEWEST: Final = {one.name: one.last for one in FEATURES}
"""Levels that a new broker without ZooKeeper finalises, as a new cluster of Apache Kafka."""
