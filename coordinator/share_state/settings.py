"""The limits that a broker's configuration sets for its share coordinators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """Attribute for attribute a key of `server.properties`; the defaults are Apache's."""

    updates_per_snapshot: int = 500
    """share.coordinator.snapshot.update.records.per.snapshot"""
    cold_snapshot_interval_ms: int = 300_000
    """share.coordinator.cold.partition.snapshot.interval.ms"""
