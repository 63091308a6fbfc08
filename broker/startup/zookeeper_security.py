"""What the configuration says of the way to ZooKeeper: TLS, a log-in, and whose znodes are.

As with Apache Kafka, the log-in is in the section `Client` of the JAAS file
(broker/security/jaas_file.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.jaas_file import java_properties, login_sections
from broker.startup.start_error import StartError
from config.errors import ConfigError
from controller.zookeeper.security import DigestLogin, ZooKeeperSecurity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.broker import BrokerConfig

SECTION = "Client"
SECTION_PROPERTY = "zookeeper.sasl.clientconfig"
ENABLE_PROPERTY = "zookeeper.sasl.client"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def zookeeper_security(config: BrokerConfig, environment: Mapping[str, str]) -> ZooKeeperSecurity:
    """Read it, with the files that it names. Raises StartError."""
    try:
        login = _login(environment)
    except ConfigError as error:
        raise StartError(str(error)) from None
    if config.zookeeper_set_acl and login is None:
        raise StartError(
            "zookeeper.set.acl makes znodes for this broker alone, so ZooKeeper must know it: log "
            f"in by SASL (section {SECTION} of the JAAS file), or by TLS with a keystore "
            "(zookeeper.ssl.client.enable, zookeeper.ssl.keystore.location)"
        )
    return ZooKeeperSecurity(login=login, sets_acl=config.zookeeper_set_acl)


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
