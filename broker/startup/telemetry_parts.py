"""Receivers of clients' metrics, if there is an endpoint to read them from."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from broker.telemetry.telemetry import Telemetry
from protocol.uuids import UUID_BYTES, from_random_bytes

if TYPE_CHECKING:
    from uuid import UUID

    from broker.startup.cluster_parts import Foundation


def telemetry_of(base: Foundation) -> Telemetry | None:
    """None without `metrics.port`, and with ZooKeeper."""
    if base.addresses.metrics.endpoint is None or base.config.zookeeper_connect:
        return None
    return Telemetry(base.config, base.settings.client_metrics, _new_id)


def _new_id() -> UUID:
    return from_random_bytes(secrets.token_bytes(UUID_BYTES))
