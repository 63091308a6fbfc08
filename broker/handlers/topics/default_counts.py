"""The counts of a new topic where the client leaves them to the broker, by a -1 (KIP-464)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from config.broker import BrokerConfig

BROKER_DEFAULT: Final = -1


def partitions_or_default(config: BrokerConfig, partitions: int) -> int:
    """Put `num.partitions` in the place of -1."""
    return config.num_partitions if partitions == BROKER_DEFAULT else partitions


def replication_factor_or_default(config: BrokerConfig, factor: int) -> int:
    """Put `default.replication.factor` in the place of -1."""
    return config.default_replication_factor if factor == BROKER_DEFAULT else factor
