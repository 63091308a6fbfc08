"""What protects the metrics: TLS, and HTTP's basic authentication."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.errors import ConfigError
from config.listener_config import for_listener

if TYPE_CHECKING:
    import socket
    import ssl

    from config.broker import BrokerConfig

LISTENER = "METRICS"
"""Keys of TLS that are for metrics alone begin with `listener.name.metrics.`."""


@dataclass(frozen=True, slots=True, repr=False)
class Protection:
    """Neither, one or both."""

    context: ssl.SSLContext | None = None
    authorization: str | None = None
    """The only header `Authorization` that will do; None lets everybody in."""

    def secured(self, accepted: socket.socket) -> socket.socket:
        """The connection with TLS, if there is any; the handshake comes with the first read."""
        if self.context is None:
            return accepted
        return self.context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)

    def admits(self, authorization: str) -> bool:
        """Whether a client with this header may read; takes as long whatever it is."""
        if self.authorization is None:
            return True
        return hmac.compare_digest(authorization.encode(), self.authorization.encode())


UNPROTECTED = Protection()


def protection_of(config: BrokerConfig) -> Protection:
    """As configured. Raises ConfigError. Call it on a thread: it reads key stores."""
    return Protection(_context(config), _authorization(config))


def _authorization(config: BrokerConfig) -> str | None:
    user, password = config.metrics_user, config.metrics_password
    if (user is None) != (password is None):
        keys = ("metrics.user", "metrics.password")
        raise ConfigError(f"{keys[0]} and {keys[1]} need each other", *keys)
    if user is None:
        return None
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _context(config: BrokerConfig) -> ssl.SSLContext | None:
    if not config.metrics_ssl_enable:
        return None
    from broker.security.tls.contexts import server_context  # noqa: PLC0415
    from broker.security.tls.stores import read_identity  # noqa: PLC0415

    own_config = for_listener(config, LISTENER)
    try:
        return server_context(own_config, read_identity(own_config), own_config.ssl_client_auth)
    except ConfigError as error:
        raise ConfigError(f"metrics.ssl.enable: {error}", *error.keys) from None
