"""Features of the cluster: what this broker supports, and what clients may rely on (KIP-584).

A finalised level is a promise about all brokers. Clients that find `transaction.version` 2 leave
AddPartitionsToTxn out and expect each end of a transaction to raise their epoch (KIP-890). A broker
that is alone promises it. In a cluster with ZooKeeper there may be brokers of Apache Kafka 3.9,
which cannot keep it, so nothing is finalised there, as in Apache's own.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Feature(NamedTuple):
    """One feature and its levels."""

    name: str
    first: int
    """The lowest level that this broker can work at; 0 is without the feature."""
    last: int
    """The highest."""

    def finalised(self, *, is_in_cluster: bool) -> int:
        """The level that the cluster works at."""
        return 0 if is_in_cluster else self.last


TRANSACTION_VERSION: Final = Feature("transaction.version", 0, 2)

FEATURES: Final = (TRANSACTION_VERSION,)
EPOCH: Final = 0
"""Grows when a finalised level changes."""
