"""Security of the connection to ZooKeeper: TLS, a log-in, and ACLs of znodes.

As with Apache Kafka, the log-in is in the section `Client` of the JAAS file
(broker/security/jaas_file.py).
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from broker.security.jaas_file import java_properties, login_sections
from broker.security.tls.contexts import client_context
from broker.security.tls.stores import read_identity
from broker.startup.start_error import StartError
from config.errors import ConfigError
from controller.zookeeper.security import DigestLogin, ZooKeeperSecurity

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from config.broker import BrokerConfig

SECTION = "Client"
SECTION_PROPERTY = "zookeeper.sasl.clientconfig"
ENABLE_PROPERTY = "zookeeper.sasl.client"
TLS_SOCKET = "org.apache.zookeeper.ClientCnxnSocketNetty"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"

_TYPES = {".jks": "JKS", ".p12": "PKCS12", ".pfx": "PKCS12", ".pkcs12": "PKCS12", ".pem": "PEM"}
_KEY_OF_LISTENERS = re.compile(r"\bssl\.(?=keystore|truststore|enabled|cipher|endpoint|key\.)")


def zookeeper_security(config: BrokerConfig, environment: Mapping[str, str]) -> ZooKeeperSecurity:
    """Read it, with the files that it names: on a thread. Raises StartError."""
    try:
        login = _login(environment)
        tls = _tls(config) if config.zookeeper_ssl_client_enable else None
    except ConfigError as error:
        raise StartError(str(error)) from None
    has_certificate = tls is not None and config.zookeeper_ssl_keystore_location is not None
    if config.zookeeper_set_acl and login is None and not has_certificate:
        raise StartError(
            "zookeeper.set.acl makes znodes for this broker alone, so ZooKeeper must know it: log "
            f"in by SASL (section {SECTION} of the JAAS file), or by TLS with a keystore "
            "(zookeeper.ssl.client.enable, zookeeper.ssl.keystore.location)"
        )
    return ZooKeeperSecurity(tls, login, config.zookeeper_set_acl)


def _login(environment: Mapping[str, str]) -> DigestLogin | None:
    properties = java_properties(environment)
    section = properties.get(SECTION_PROPERTY, SECTION)
    modules = login_sections(environment).get(section)
    if not modules:
        return None
    if properties.get(ENABLE_PROPERTY, "true") != "true":
        raise ConfigError(f"-D{ENABLE_PROPERTY}=false, but the JAAS file has a section {section}")
    module = modules[0]
    if module.class_name != DIGEST_MODULE:
        raise ConfigError(
            f"section {section} of the JAAS file has {module.class_name}; this broker logs in to "
            f"ZooKeeper with {DIGEST_MODULE} only"
        )
    try:
        return DigestLogin(module.options["username"], module.options["password"])
    except KeyError as missing:
        raise ConfigError(f"section {section} of the JAAS file has no {missing}") from None


def _tls(config: BrokerConfig) -> ssl.SSLContext:
    checks = {
        "zookeeper.ssl.crl.enable": config.zookeeper_ssl_crl_enable,
        "zookeeper.ssl.ocsp.enable": config.zookeeper_ssl_ocsp_enable,
    }
    for name, is_wanted in checks.items():
        if is_wanted:
            raise ConfigError(f"{name}: this broker does not look for revoked certificates", name)
    if config.zookeeper_client_cnxn_socket not in (None, TLS_SOCKET):
        name = "zookeeper.clientCnxnSocket"
        raise ConfigError(f"{name}: with TLS it can only be {TLS_SOCKET}", name)
    own = _as_listeners_have_it(config)
    try:
        return client_context(own, read_identity(own))
    except ConfigError as error:
        raise ConfigError(_KEY_OF_LISTENERS.sub("zookeeper.ssl.", str(error))) from None


def _as_listeners_have_it(config: BrokerConfig) -> BrokerConfig:
    """A configuration whose keys `ssl.*` have the values of `zookeeper.ssl.*`."""
    kinds = (
        _kind(config.zookeeper_ssl_keystore_type, config.zookeeper_ssl_keystore_location),
        _kind(config.zookeeper_ssl_truststore_type, config.zookeeper_ssl_truststore_location),
    )
    of_keys, of_trust = (
        config.zookeeper_ssl_keystore_password,
        config.zookeeper_ssl_truststore_password,
    )
    is_pem, trust_is_pem = (kind == "PEM" for kind in kinds)
    has_keys = config.zookeeper_ssl_keystore_location is not None
    algorithm = config.zookeeper_ssl_endpoint_identification_algorithm
    return dataclasses.replace(
        config,
        ssl_cipher_suites=config.zookeeper_ssl_cipher_suites,
        ssl_enabled_protocols=config.zookeeper_ssl_enabled_protocols,
        ssl_protocol=config.zookeeper_ssl_protocol,
        ssl_endpoint_identification_algorithm="https" if algorithm.upper() == "HTTPS" else "",
        ssl_keystore_location=config.zookeeper_ssl_keystore_location,
        ssl_keystore_type=kinds[0],
        ssl_keystore_password=None if is_pem or not has_keys else of_keys or "",
        ssl_key_password=of_keys if is_pem else None,
        ssl_keystore_key=None,
        ssl_keystore_certificate_chain=None,
        ssl_truststore_location=config.zookeeper_ssl_truststore_location,
        ssl_truststore_type=kinds[1],
        ssl_truststore_password=None if trust_is_pem else of_trust,
        ssl_truststore_certificates=None,
    )


def _kind(stated: str | None, location: str | None) -> str:
    """The format of a store: as stated, or by the ending of its file (as in ZooKeeper)."""
    if stated:
        return stated.upper()
    return _TYPES.get(PurePath(location or "").suffix.lower(), "JKS")
