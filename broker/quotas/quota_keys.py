"""The names of quotas, and which values they take.

Source: org.apache.kafka.server.config.QuotaConfig.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from config.key import INT_MAX, LONG_MAX


class QuotaKey(StrEnum):
    """Quota of a user, a client id or an address."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"
    """Bytes of Produce requests per second."""
    CONSUMER_BYTE_RATE = "consumer_byte_rate"
    """Bytes of Fetch answers per second."""
    REQUEST_PERCENTAGE = "request_percentage"
    """Time that requests take, in per cent of one processor."""
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
    """Partitions created and deleted per second."""
    CONNECTION_CREATION_RATE = "connection_creation_rate"
    """Connections from an address per second."""


CLIENT_KEYS: Final = (
    QuotaKey.PRODUCER_BYTE_RATE,
    QuotaKey.CONSUMER_BYTE_RATE,
    QuotaKey.REQUEST_PERCENTAGE,
    QuotaKey.CONTROLLER_MUTATION_RATE,
)
"""Quotas of users and client ids."""
ADDRESS_KEYS: Final = (QuotaKey.CONNECTION_CREATION_RATE,)

LARGEST: Final = {
    QuotaKey.PRODUCER_BYTE_RATE: LONG_MAX,
    QuotaKey.CONSUMER_BYTE_RATE: LONG_MAX,
    QuotaKey.CONNECTION_CREATION_RATE: INT_MAX,
}
"""Of the quotas that are whole numbers."""
