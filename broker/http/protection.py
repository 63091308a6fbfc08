"""Protection of endpoints over HTTP: TLS, and basic authentication."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from config.errors import ConfigError
from config.listeners.listener_config import for_listener

if TYPE_CHECKING:
    import socket
    import ssl

    from config.broker import BrokerConfig


@dataclass(frozen=True, slots=True, repr=False)
class Protection:
    """Neither, one or both."""

    context: ssl.SSLContext | None = None
    authorization: str | None = None
    """The only header `Authorization` that will do; None lets everybody in."""
    user_key: str = ""
    """The configuration key of the user."""

    def secured(self, accepted: socket.socket) -> socket.socket:
        """The connection with TLS, if there is any; the handshake comes with the first read."""
        if self.context is None:
            return accepted
        return self.context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)

    def admits(self, authorization: str) -> bool:
        """Return whether a client with this header may read; takes the same time in any case."""
        if self.authorization is None:
            return True
        return hmac.compare_digest(authorization.encode(), self.authorization.encode())


UNPROTECTED = Protection()


class Guard(NamedTuple):
    """Protection configured for one endpoint."""

    keys: str
    """Prefix of its keys: `metrics` of `metrics.user`."""
    listener: str
    """Keys of TLS that are for it alone begin with `listener.name.` and this in small letters."""
    user: str | None
    password: str | None
    has_tls: bool


def guard_of_metrics(config: BrokerConfig) -> Guard:
    """Protection of the metrics."""
    user, password = config.metrics_user, config.metrics_password
    return Guard("metrics", "METRICS", user, password, config.metrics_ssl_enable)


def guard_of_lookups(config: BrokerConfig) -> Guard:
    """Protection of look-ups by key."""
    user, password = config.key_index_user, config.key_index_password
    return Guard("key.index", "KEY-INDEX", user, password, config.key_index_ssl_enable)


def protection_of(config: BrokerConfig, guard: Guard) -> Protection:
    """As configured. Raises ConfigError. Call it on a thread: it reads key stores."""
    return Protection(_context(config, guard), _authorization(guard), f"{guard.keys}.user")


def _authorization(guard: Guard) -> str | None:
    if (guard.user is None) != (guard.password is None):
        keys = (f"{guard.keys}.user", f"{guard.keys}.password")
        raise ConfigError(f"{keys[0]} and {keys[1]} need each other", *keys)
    if guard.user is None:
        return None
    return f"Basic {base64.b64encode(f'{guard.user}:{guard.password}'.encode()).decode()}"


def _context(config: BrokerConfig, guard: Guard) -> ssl.SSLContext | None:
    if not guard.has_tls:
        return None
    from broker.security.tls.contexts import server_context  # noqa: PLC0415
    from broker.security.tls.stores import read_identity  # noqa: PLC0415

    own_config = for_listener(config, guard.listener)
    try:
        return server_context(own_config, read_identity(own_config), own_config.ssl_client_auth)
    except ConfigError as error:
        raise ConfigError(f"{guard.keys}.ssl.enable: {error}", *error.keys) from None
