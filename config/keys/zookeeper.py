"""The connection to ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, LOW, boolean, integer, optional_strings, password, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ZooKeeperKeys:
    """The connection to ZooKeeper."""

    zookeeper_client_cnxn_socket: str | None = string(
        None, name="zookeeper.clientCnxnSocket", acts=True
    )
    """Java class of the connection, which Apache Kafka needs for TLS; this broker does not."""

    zookeeper_connect: str | None = string(None, importance=HIGH, acts=True)
    """ZooKeeper's `host:port` list, with an optional path; unset keeps metadata beside the logs."""

    zookeeper_connection_timeout_ms: int | None = integer(None, importance=HIGH, acts=True)
    """Time to wait for a connection; if unset, the session timeout."""

    zookeeper_max_in_flight_requests: int = integer(10, low=1, importance=HIGH, acts=True)
    """Requests sent to ZooKeeper before the first is answered."""

    zookeeper_metadata_migration_enable: bool = boolean(False, importance=HIGH)
    """Migrate Apache Kafka's metadata from ZooKeeper to a Raft quorum."""

    zookeeper_metadata_migration_min_batch_size: int = integer(200, low=1, internal=True)
    """Records in one batch of that move."""

    zookeeper_session_timeout_ms: int = integer(18_000, importance=HIGH, acts=True)
    """Silence after which ZooKeeper counts this broker as dead."""

    zookeeper_set_acl: bool = boolean(False, importance=HIGH, acts=True)
    """Restrict writing of znodes this broker creates, and reading of secret ones, to its own
    identity."""

    zookeeper_ssl_cipher_suites: tuple[str, ...] = optional_strings(importance=LOW, acts=True)
    """Cipher suites offered to ZooKeeper."""

    zookeeper_ssl_client_enable: bool = boolean(False, acts=True)
    """Connect to ZooKeeper over TLS."""

    zookeeper_ssl_crl_enable: bool = boolean(False, importance=LOW, acts=True)
    """Check ZooKeeper's certificate against revocation lists; refused here."""

    zookeeper_ssl_enabled_protocols: tuple[str, ...] = optional_strings(importance=LOW, acts=True)
    """TLS versions offered to ZooKeeper."""

    zookeeper_ssl_endpoint_identification_algorithm: str = string(
        "HTTPS", importance=LOW, acts=True
    )
    """Algorithm that checks ZooKeeper's host name; empty disables the check."""

    zookeeper_ssl_keystore_location: str | None = string(None, acts=True)
    """File with this broker's key and certificate for ZooKeeper."""

    zookeeper_ssl_keystore_password: str | None = password(acts=True)
    """Password of that file."""

    zookeeper_ssl_keystore_type: str | None = string(None, acts=True)
    """Format of that file; unset goes by its ending."""

    zookeeper_ssl_ocsp_enable: bool = boolean(False, importance=LOW, acts=True)
    """Check ZooKeeper's certificate by OCSP; refused here."""

    zookeeper_ssl_protocol: str = string("TLSv1.2", importance=LOW, acts=True)
    """TLS version, if none are enabled by name."""

    zookeeper_ssl_truststore_location: str | None = string(None, acts=True)
    """File with the certificates that ZooKeeper's must lead to."""

    zookeeper_ssl_truststore_password: str | None = password(acts=True)
    """Password of that file."""

    zookeeper_ssl_truststore_type: str | None = string(None, acts=True)
    """Format of that file; unset goes by its ending."""
