"""SASL on links to other brokers: this broker logs in, and again before its session ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from broker.network.links import LinkError
from broker.security.sasl.client.mechanism import LoginError
from protocol.errors import ErrorCode
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from broker.network.links import Ask
    from broker.security.sasl.client.mechanism import ClientMechanism

HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION = 1
"""SaslAuthenticate version with the session lifetime; brokers have had it since Kafka 2.2."""
MAX_TOKENS = 16
"""More than any mechanism exchanges: the other broker shall not keep this one at it. Fixed."""
SHARE_OF_LIFETIME = 0.85
"""After which to log in again. Apache Kafka draws between 0.85 and 0.95."""
MS_PER_SECOND = 1000


class SaslLogin:
    """`broker.network.links.Login` of all links with SASL."""

    def __init__(self, mechanism: ClientMechanism) -> None:
        self._mechanism = mechanism

    async def log_in(self, ask: Ask) -> float | None:
        """Log in; returns the seconds after which to do so again, if ever. Raises LinkError."""
        name = self._mechanism.name
        request = SaslHandshakeRequest(mechanism=name)
        chosen = cast("SaslHandshakeResponse", await ask(request, HANDSHAKE_VERSION))
        if chosen.error_code != ErrorCode.NONE:
            code = _shown(chosen.error_code)
            offered = ", ".join(chosen.mechanisms) or "none"
            raise LinkError(f"SASL {name} is refused: {code} (it offers {offered})")
        try:
            lifetime_ms = await self._exchange(ask)
        except LoginError as error:
            raise LinkError(f"SASL {name}: {error}") from None
        return lifetime_ms / MS_PER_SECOND * SHARE_OF_LIFETIME if lifetime_ms > 0 else None

    async def _exchange(self, ask: Ask) -> int:
        exchange = self._mechanism.exchange()
        token: bytes | None = await exchange.first()
        lifetime_ms = 0
        for _ in range(MAX_TOKENS):
            if token is None:
                return lifetime_ms
            request = SaslAuthenticateRequest(auth_bytes=token)
            answer = cast("SaslAuthenticateResponse", await ask(request, AUTHENTICATE_VERSION))
            if answer.error_code != ErrorCode.NONE:
                raise LoginError(answer.error_message or _shown(answer.error_code))
            lifetime_ms = answer.session_lifetime_ms
            token = await exchange.respond(answer.auth_bytes)
        raise LoginError(f"no end after {MAX_TOKENS} tokens")


def _shown(code: int) -> str:
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else f"error {code}"
