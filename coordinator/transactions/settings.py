"""The settings of transactions in a broker's configuration and the cluster's features."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Each attribute is a key of `server.properties`, with Apache Kafka's default."""

    max_timeout_ms: int = 900_000
    """transaction.max.timeout.ms"""
    id_expiration_ms: int = 604_800_000
    """transactional.id.expiration.ms"""
    is_two_phase_commit_enabled: bool = False
    """transaction.two.phase.commit.enable"""
    version: int = 2
    """The finalised level of the feature `transaction.version`: from 1 on, records are of the
    flexible format; from 2 on, what the coordinator aborts raises the epoch as producers do.
    """
