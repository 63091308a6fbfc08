"""Features: the levels that this broker supports, and the finalised ones of the cluster (KIP-584).

A finalised level is a promise about all brokers. Clients that see `transaction.version` 2 omit
AddPartitionsToTxn and expect each end of a transaction to raise their epoch (KIP-890), and
`group.version` 1 promises that every broker coordinates consumer groups of the newer protocol. A
single broker promises both. A cluster with ZooKeeper may have brokers of Apache Kafka 3.9, which
cannot keep the promise, so nothing is finalised there, as in Apache's own.
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

    def finalised(self, *, is_in_cluster: bool) -> int:
        """The level that the cluster works at."""
        return 0 if is_in_cluster else self.last


GROUP_VERSION: Final = Feature("group.version", 0, 1)
"""Consumer groups of the newer protocol (KIP-848)."""

TRANSACTION_VERSION: Final = Feature("transaction.version", 0, 2)

FEATURES: Final = (GROUP_VERSION, TRANSACTION_VERSION)
EPOCH: Final = 0
"""Grows when a finalised level changes."""
