"""Listeners, sockets, connections and request queues."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import (
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    LOW,
    PER_BROKER,
    integer,
    long,
    optional_strings,
    string,
    strings,
)
from config.rules import NotEmpty


@dataclass(frozen=True, init=False, repr=False, eq=False)
class NetworkKeys:
    """Listeners, sockets, connections and request queues."""

    advertised_listeners: tuple[str, ...] = optional_strings(
        rule=NotEmpty(), importance=HIGH, scope=PER_BROKER, acts=True
    )
    """Addresses that clients connect to, where they differ from `listeners`."""

    connection_failed_authentication_delay_ms: int = integer(100, low=0, importance=LOW, acts=True)
    """Wait before a connection that failed to authenticate is closed."""

    connections_max_idle_ms: int = long(600_000, acts=True)
    """Time without a request after which a connection is closed."""

    control_plane_listener_name: str | None = string(None, importance=HIGH)
    """Listener on which the controller reaches brokers, apart from data."""

    early_start_listeners: tuple[str, ...] = optional_strings(importance=HIGH)
    """Listeners that accept connections before the broker is fully started."""

    inter_broker_listener_name: str | None = string(None, rule=NotEmpty(), acts=True)
    """Listener through which brokers talk to each other."""

    listener_security_protocol_map: str = string(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        importance=LOW,
        scope=PER_BROKER,
        acts=True,
    )
    """Security protocol of each listener name, as `NAME:PROTOCOL` pairs."""

    listeners: tuple[str, ...] = strings(
        "PLAINTEXT://:9092", importance=HIGH, scope=PER_BROKER, acts=True
    )
    """Addresses to listen on: `NAME://host:port`, comma-separated; no host is every interface."""

    max_connection_creation_rate: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE, acts=True)
    """New connections per second; those beyond it wait until they are served."""

    max_connections: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE, acts=True)
    """Connections open at one time."""

    max_connections_per_ip: int = integer(INT_MAX, low=0, scope=CLUSTER_WIDE, acts=True)
    """Connections open at one time from one address."""

    max_connections_per_ip_overrides: str = string("", scope=CLUSTER_WIDE, acts=True)
    """Other limits for some addresses, as `address:limit` pairs."""

    num_io_threads: int = integer(8, low=1, importance=HIGH, scope=CLUSTER_WIDE)
    """Threads Apache Kafka handles requests with."""

    num_network_threads: int = integer(3, low=1, importance=HIGH, scope=CLUSTER_WIDE)
    """Threads Apache Kafka reads and writes sockets with."""

    queued_max_request_bytes: int = long(-1, acts=True)
    """Memory for requests that outgrow `connection.buffer.max.bytes`, over all connections.

    -1 is a quarter of the machine's memory, or of the container's. At the limit, connections with
    such a request are not read until another one's is handled.
    """

    queued_max_requests: int = integer(500, low=1, importance=HIGH, acts=True)
    """Requests that wait for replication, or behind one that does; beyond it one per connection."""

    request_timeout_ms: int = integer(30_000, importance=HIGH, acts=True)
    """Time that this broker waits for another broker's response."""

    socket_connection_setup_timeout_max_ms: int = long(30_000)
    """Longest wait for a connection to another broker to be made."""

    socket_connection_setup_timeout_ms: int = long(10_000)
    """First wait for a connection to another broker to be made."""

    socket_listen_backlog_size: int = integer(50, low=1, acts=True)
    """Connections the system queues until they are accepted."""

    socket_receive_buffer_bytes: int = integer(102_400, importance=HIGH, acts=True)
    """Receive buffer of each socket; -1 leaves it to the system."""

    socket_request_max_bytes: int = integer(100 << 20, low=1, importance=HIGH, acts=True)
    """Largest request; a larger one closes the connection."""

    socket_send_buffer_bytes: int = integer(102_400, importance=HIGH, acts=True)
    """Send buffer of each socket; -1 leaves it to the system."""
