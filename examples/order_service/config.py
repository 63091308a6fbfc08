"""Settings of the service, from its environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Settings:
    """Where Kafka is, and what the topics are called."""

    bootstrap_servers: str
    orders: str = "orders"
    shipments: str = "shipments"
    group: str = "shipping"

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Settings:
        """Settings of the environment."""
        return cls(environ["KAFKA"], environ.get("ORDERS", "orders"))
