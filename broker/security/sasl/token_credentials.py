"""Delegation tokens as SCRAM's credentials: the id is the name, the HMAC the password (KIP-48).

A credential takes milliseconds to compute. So it is computed on a thread when the broker learns of
a token, one at a time; only a log-in before that computes it on the loop.
"""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from broker.security.sasl.credentials import TokenCredential
from protocol.scram_types import (
    ScramCredential,
    ScramMechanism,
    credential_from,
    salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.runtime.clock import Clock
    from broker.runtime.deferred import Deferred
    from controller.security.delegation_tokens import DelegationTokens

    Made: TypeAlias = Mapping[ScramMechanism, ScramCredential]

SALT_BYTES = 32


class TokenCredentials:
    """Credentials of the current tokens."""

    def __init__(
        self,
        tokens: DelegationTokens,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        on_thread: Callable[[Callable[[], Made]], Deferred[Made]],
    ) -> None:
        """Make them for the tokens of today and of tomorrow."""
        self._tokens = tokens
        self._clock = clock
        self._random_bytes = random_bytes
        self._on_thread = on_thread
        self._made: dict[str, Made] = {}
        self._pending: dict[str, None] = {}
        self._is_busy = False
        tokens.on_change(self._changed)
        for token in tokens.all():
            self._changed(token.token_id)

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """The token of that id; None if there is none, or it has expired."""
        token = self._tokens.get(token_id)
        if token is None or token.is_expired(self._clock.now_ms()):
            return None
        made = self._made.get(token_id)
        if made is None:
            made = self._made[token_id] = self._work(token_id)()
        return TokenCredential(token.owner, made[mechanism], token.expiry_ms)

    def _changed(self, token_id: str) -> None:
        if self._tokens.get(token_id) is None:
            self._made.pop(token_id, None)
            self._pending.pop(token_id, None)
        elif token_id not in self._made:
            self._pending[token_id] = None
            self._make_next()

    def _make_next(self) -> None:
        """Begin with the next one, unless another is being made."""
        if self._is_busy or not self._pending:
            return
        token_id = next(iter(self._pending))
        del self._pending[token_id]
        self._is_busy = True

        def finish(made: Made) -> None:
            self._is_busy = False
            if self._tokens.get(token_id) is not None:
                self._made.setdefault(token_id, made)
            self._make_next()

        def fail(error: Exception) -> None:
            self._is_busy = False
            self._make_next()
            raise error  # which is logged; the credential is made when it is needed

        self._on_thread(self._work(token_id)).then(finish, fail)

    def _work(self, token_id: str) -> Callable[[], Made]:
        secret = b64encode(self._tokens.hmac_of(token_id))
        return partial(_make, secret, self._random_bytes(SALT_BYTES))


def _make(secret: bytes, salt: bytes) -> Made:
    made = {}
    for mechanism in ScramMechanism:
        iterations = mechanism.min_iterations
        salted = salted_password(mechanism, secret, salt, iterations)
        made[mechanism] = credential_from(mechanism, salted, salt, iterations)
    return made
