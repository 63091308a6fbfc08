"""The connection to ZooKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, LOW, boolean, integer, password, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ZooKeeperKeys:
    """The connection to ZooKeeper."""

    zookeeper_client_cnxn_socket: str | None = string(None, name="zookeeper.clientCnxnSocket")

    zookeeper_connect: str | None = string(None, importance=HIGH)

    zookeeper_connection_timeout_ms: int | None = integer(None, importance=HIGH)

    zookeeper_max_in_flight_requests: int = integer(10, low=1, importance=HIGH)

    zookeeper_metadata_migration_enable: bool = boolean(False, importance=HIGH)

    zookeeper_metadata_migration_min_batch_size: int = integer(200, low=1, internal=True)

    zookeeper_session_timeout_ms: int = integer(18_000, importance=HIGH)

    zookeeper_set_acl: bool = boolean(False, importance=HIGH)

    zookeeper_ssl_cipher_suites: tuple[str, ...] = strings(importance=LOW)

    zookeeper_ssl_client_enable: bool = boolean(False)

    zookeeper_ssl_crl_enable: bool = boolean(False, importance=LOW)

    zookeeper_ssl_enabled_protocols: tuple[str, ...] = strings(importance=LOW)

    zookeeper_ssl_endpoint_identification_algorithm: str = string("HTTPS", importance=LOW)

    zookeeper_ssl_keystore_location: str | None = string(None)

    zookeeper_ssl_keystore_password: str | None = password()

    zookeeper_ssl_keystore_type: str | None = string(None)

    zookeeper_ssl_ocsp_enable: bool = boolean(False, importance=LOW)

    zookeeper_ssl_protocol: str = string("TLSv1.2", importance=LOW)

    zookeeper_ssl_truststore_location: str | None = string(None)

    zookeeper_ssl_truststore_password: str | None = password()

    zookeeper_ssl_truststore_type: str | None = string(None)
