"""Codes of what can have a configuration, in the requests about configurations."""

from __future__ import annotations

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16
GROUP = 32
