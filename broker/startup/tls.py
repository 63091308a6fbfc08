"""TLS at the start: stores that cannot be used end it before any address is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.runtime.shutdown import UndoStack
    from broker.security.tls.broker_tls import BrokerTls
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from config.listeners import Listeners


async def open_tls(
    config: BrokerConfig, listeners: Listeners, machine: Machine, undo: UndoStack
) -> BrokerTls | None:
    """Read the stores of all listeners with TLS; None if none has it. Raises ConfigError.

    Only then is the library imported, which takes a tenth of a second.
    """
    endpoints = {one.name: one for one in listeners.bound if one.protocol.endswith("SSL")}
    if not endpoints:
        return None
    from broker.security.tls.broker_tls import BrokerTls  # noqa: PLC0415
    from broker.security.tls.handshakes import THREADS  # noqa: PLC0415
    from broker.security.tls.listener_context import ListenerName  # noqa: PLC0415

    tls = BrokerTls(config, machine.platform.threads(THREADS, "tls"), machine.timers)
    undo.push("ending TLS handshakes", tls.close)
    for endpoint in endpoints.values():
        has_sasl = endpoint.protocol.startswith("SASL_")
        is_inter_broker = endpoint.name == listeners.inter_broker
        await tls.open(ListenerName(endpoint.name, has_sasl, is_inter_broker))
    tls.watch(machine.supervision.spawn, config.ssl_store_check_interval_ms)
    return tls
