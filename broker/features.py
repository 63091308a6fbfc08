"""Features of the cluster: what this broker supports, and what clients may rely on (KIP-584).

A finalised level is a promise about all brokers. Clients that find `transaction.version` 2 leave
AddPartitionsToTxn out and expect each end of a transaction to raise their epoch (KIP-890).
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Feature(NamedTuple):
    """One feature and its levels."""

    name: str
    first: int
    """The lowest level that this broker can work at; 0 is without the feature."""
    last: int
    finalised: int
    """The level that the cluster works at."""


TRANSACTION_VERSION: Final = Feature("transaction.version", 0, 2, finalised=2)

FEATURES: Final = (TRANSACTION_VERSION,)
EPOCH: Final = 0
"""Grows when a finalised level changes."""
