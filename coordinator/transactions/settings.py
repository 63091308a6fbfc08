"""The settings of transactions in a broker's configuration and the cluster's features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NEWEST_VERSION = 2
"""The highest level of `transaction.version`."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Each attribute is a key of `server.properties`, with Apache Kafka's default."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    is_two_phase_commit_enabled: bool = False
    """For InitProducerId 6, which is not served (GAPS.md)."""
    finalised: Callable[[], int] = lambda: NEWEST_VERSION
    """Returns the finalised level of the feature `transaction.version`; it can change."""

    @property
    def version(self) -> int:
        """The current level of `transaction.version`.

        From 1 on, records are of the flexible format; from 2 on, an abort by the coordinator raises
        the epoch, as a producer's does.
        """
        return self.finalised()
