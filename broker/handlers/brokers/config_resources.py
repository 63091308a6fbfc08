"""Kafka's codes of resource types in requests about configurations (`ConfigResource.Type`)."""

from __future__ import annotations

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16
GROUP = 32
