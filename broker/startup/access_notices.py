"""Access granted by each listener: logged plainly at the start.

As a warning for a listener open to anybody on the network, as a remark if only to this machine.
"""

from __future__ import annotations

import logging
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple

from config.listeners.addresses import java_address
from config.listeners.listener_config import for_listener

if TYPE_CHECKING:
    from collections.abc import Iterable

    from config.broker import BrokerConfig
    from config.listeners.endpoints import Endpoint

ANONYMOUS = "User:ANONYMOUS"

logger = logging.getLogger(__name__)


class Notice(NamedTuple):
    """One line to log."""

    text: str
    is_warning: bool


def tell_access(config: BrokerConfig, endpoints: Iterable[Endpoint]) -> None:
    """Log the access granted by the bound listeners."""
    for endpoint in endpoints:
        for notice in notices(config, endpoint):
            logger.log(logging.WARNING if notice.is_warning else logging.INFO, "%s", notice.text)


def notices(config: BrokerConfig, endpoint: Endpoint) -> list[Notice]:
    """Notices about a listener."""
    is_known, is_exposed = _are_clients_known(config, endpoint), not _is_loopback(endpoint.host)
    may, is_too_much = _what_they_may(config, is_known=is_known)
    who = "everyone who logs in" if is_known else "anyone"
    found = [Notice(f"{who} may {may} on {endpoint}", is_too_much and is_exposed)]
    if is_exposed and endpoint.protocol == "SASL_PLAINTEXT" and _sends_secrets(config, endpoint):
        text = f"passwords or tokens cross the network unencrypted on {endpoint}"
        found.append(Notice(text, is_warning=True))
    return found


def _what_they_may(config: BrokerConfig, *, is_known: bool) -> tuple[str, bool]:
    """Permissions in words, and whether they exceed an operator's likely intention."""
    if not config.authorizer_class_name:
        return "do anything", True
    super_users = {name.strip() for name in config.super_users.split(";")}
    if not is_known and ANONYMOUS in super_users:
        return f"do anything, as the super user {ANONYMOUS},", True
    if config.allow_everyone_if_no_acl_found:
        return "do anything to what no ACL names", not is_known
    return f"do what ACLs allow {'them' if is_known else ANONYMOUS}", False


def _are_clients_known(config: BrokerConfig, endpoint: Endpoint) -> bool:
    if endpoint.protocol.startswith("SASL_"):
        return True
    own = for_listener(config, endpoint.name)
    return endpoint.protocol == "SSL" and own.ssl_client_auth == "required"


def _sends_secrets(config: BrokerConfig, endpoint: Endpoint) -> bool:
    mechanisms = for_listener(config, endpoint.name).sasl_enabled_mechanisms
    return not {"PLAIN", "OAUTHBEARER"}.isdisjoint(mechanisms)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(java_address(host)).is_loopback
    except ValueError:  # a name, or nothing, which is every interface
        return False
