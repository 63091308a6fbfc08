"""Listeners, sockets, connections and request queues."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, INT_MAX, LOW, PER_BROKER, integer, long, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class NetworkKeys:
    """Listeners, sockets, connections and request queues."""

    advertised_listeners: tuple[str, ...] = strings(importance=HIGH, scope=PER_BROKER)

    connection_failed_authentication_delay_ms: int = integer(100, low=0, importance=LOW)

    connections_max_idle_ms: int = long(600_000)

    control_plane_listener_name: str | None = string(None, importance=HIGH)

    early_start_listeners: tuple[str, ...] = strings(importance=HIGH)

    inter_broker_listener_name: str | None = string(None)

    listener_security_protocol_map: str = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance=LOW,
        scope=PER_BROKER,
    )

    listeners: tuple[str, ...] = strings("PLAINTEXT://:9092", importance=HIGH, scope=PER_BROKER)

    max_connection_creation_rate: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE)

    max_connections: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE)

    max_connections_per_ip: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE)

    max_connections_per_ip_overrides: str = string("", scope=CLUSTER_WIDE)

    num_io_threads: int = integer(8, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    num_network_threads: int = integer(3, low=1, importance=HIGH, scope=CLUSTER_WIDE)

    queued_max_request_bytes: int = long(-1)

    queued_max_requests: int = integer(500, low=1, importance=HIGH)

    request_timeout_ms: int = integer(30_000, importance=HIGH)

    socket_connection_setup_timeout_max_ms: int = long(30_000)

    socket_connection_setup_timeout_ms: int = long(10_000)

    socket_listen_backlog_size: int = integer(50, low=1)

    socket_receive_buffer_bytes: int = integer(102_400, importance=HIGH)

    socket_request_max_bytes: int = integer(100 << 20, low=1, importance=HIGH)

    socket_send_buffer_bytes: int = integer(102_400, importance=HIGH)
