"""Settings of the API."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Where events go, and how long a client waits for that."""

    bootstrap_servers: str = "localhost:9092"
    topic: str = "events"
    patience_seconds: float = 5.0
