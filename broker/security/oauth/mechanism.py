"""OAUTHBEARER at the side of the server: an exchange ends with a valid token.

A client with an invalid token gets the reason in JSON; it answers with a single byte, and is
refused. It may present another token instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.security.oauth.bearer_token import BearerToken, InvalidTokenError
from broker.security.oauth.client_message import ABORT, parse_client_message, refusal
from broker.security.principal import user
from broker.security.sasl.mechanism import Authenticated, Challenge, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.clock import Clock
    from broker.security.oauth.bearer_token import TokenValidator
    from broker.security.sasl.mechanism import Step

OAUTHBEARER = "OAUTHBEARER"


class OauthBearerMechanism:
    """OAUTHBEARER of one listener."""

    name = OAUTHBEARER

    def __init__(
        self, validator: TokenValidator, clock: Clock, tell: Callable[[str], None]
    ) -> None:
        """`tell` logs the reason of each refusal."""
        self._validator = validator
        self._clock = clock
        self._tell = tell

    def exchange(self) -> OauthBearerExchange:
        """Begin with a client."""
        return OauthBearerExchange(self._validator, self._clock, self._tell)


class OauthBearerExchange:
    """The authentication of one client."""

    def __init__(
        self, validator: TokenValidator, clock: Clock, tell: Callable[[str], None]
    ) -> None:
        self._validator = validator
        self._clock = clock
        self._tell = tell
        self._refusal: str | None = None

    def respond(self, token: bytes) -> Step | Deferred[Step]:
        """Take the client's message. Raises InvalidCredentialsError or RefusedError."""
        if token == ABORT and self._refusal is not None:
            raise RefusedError(self._refusal)
        self._refusal = None
        message = parse_client_message(token)
        try:
            valid = self._validator.validate(message.token, self._clock.now_ms())
        except InvalidTokenError as error:
            return self._refuse(error)
        if isinstance(valid, BearerToken):
            return _accept(valid, message.authorisation_id)
        step: Deferred[Step] = Deferred(on_abandon=valid.abandon)

        def fail(error: Exception) -> None:
            if isinstance(error, InvalidTokenError):
                step.complete(self._refuse(error))
            else:
                step.fail(error)

        valid.then(
            step.guard(lambda found: step.complete(_accept(found, message.authorisation_id))), fail
        )
        return step

    def _refuse(self, error: InvalidTokenError) -> Challenge:
        self._tell(str(error))
        self._refusal = refusal(error.status, error.scope)
        return Challenge(self._refusal.encode())


def _accept(token: BearerToken, authorisation_id: str) -> Authenticated:
    if authorisation_id not in ("", token.name):
        raise RefusedError(
            f"Authentication failed: Client requested an authorization id ({authorisation_id}) "
            f"that is different from the token's principal name ({token.name})"
        )
    return Authenticated(user(token.name), expires_at_ms=token.expires_at_ms)
