"""PLAIN (RFC 4616): the client sends its name and its password.

[authorisation id] NUL name NUL password
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from broker.security.principal import user
from broker.security.sasl.mechanism import Authenticated, RefusedError
from protocol.wire import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN = "PLAIN"
USER_PREFIX = "user_"
TOKENS = 3
"""Parts of the message."""


class PlainMechanism:
    """Compares with the passwords in `sasl.jaas.config`; also the exchange, as it has one step."""

    name = PLAIN

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` of the login module: `user_alice` is the password of alice."""
        self._passwords = {
            name.removeprefix(USER_PREFIX): password.encode()
            for name, password in options.items()
            if name.startswith(USER_PREFIX)
        }

    def exchange(self) -> PlainMechanism:
        """Return itself: no state is kept between steps."""
        return self

    def respond(self, token: bytes) -> Authenticated:
        """Compare name and password. Raises RefusedError, with Kafka's words."""
        parts = text_of(token).split("\0", TOKENS)
        if len(parts) != TOKENS:
            raise RefusedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorisation_id, name, password = parts
        if not name:
            raise RefusedError("Authentication failed: username not specified")
        if not password:
            raise RefusedError("Authentication failed: password not specified")
        if not self._is_right(name, password.encode()):
            raise RefusedError("Authentication failed: Invalid username or password")
        if authorisation_id not in ("", name):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id "
                "that is different from username"
            )
        return Authenticated(user(name))

    def _is_right(self, name: str, password: bytes) -> bool:
        """Does the same work for an unknown name, so that timing does not reveal it."""
        known = self._passwords.get(name)
        is_equal = hmac.compare_digest(password if known is None else known, password)
        return is_equal and known is not None
