"""SCRAM-SHA-256 and SCRAM-SHA-512: the client proves its password and does not send it (RFC 5802).

An unknown name gets a challenge like any other, and fails with the proof: neither answers nor
timing reveal which names exist. Apache Kafka refuses such a name at once, in the same words.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING

from broker.security.principal import TokenPrincipal, user
from broker.security.sasl.mechanism import (
    Authenticated,
    Challenge,
    InvalidCredentialsError,
    RefusedError,
)
from broker.security.sasl.scram_keys import is_proved, signature_of
from broker.security.sasl.scram_messages import (
    ClientFirst,
    read_client_final,
    read_client_first,
    server_first,
)
from protocol.scram_types import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.security.sasl.credentials import Credentials
    from broker.security.sasl.mechanism import Step

NONCE_BITS = 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Scram:
    """One of the two, as a listener has it."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: Credentials,
        draw_bits: Callable[[int], int],
    ) -> None:
        """`draw_bits` draws a number of that many bits."""
        self.mechanism = mechanism
        self.name = mechanism.mechanism_name
        self._credentials = credentials
        self._draw_bits = draw_bits
        self._secret = draw_bits(8 * 32).to_bytes(32, "big")

    def exchange(self) -> ScramExchange:
        """Begin with a client."""
        return ScramExchange(self)

    def nonce(self) -> str:
        """Nonce that makes each exchange unique."""
        return base36(self._draw_bits(NONCE_BITS))

    def look_up(self, first: ClientFirst) -> tuple[str | None, ScramCredential, int | None]:
        """Principal, credential and expiry time of a name.

        An unknown name has an invented credential, created in all cases, so that timing does not
        reveal it.
        """
        invented = self._invented(first.name)
        if first.is_token:
            token = self._credentials.tokens.token(self.mechanism, first.name)
            if token is None:
                return None, invented, None
            return TokenPrincipal(token.owner), token.credential, token.expires_at_ms
        known = self._credentials.users.credential(self.mechanism, first.name)
        return (None, invented, None) if known is None else (user(first.name), known, None)

    def _invented(self, name: str) -> ScramCredential:
        """The same for the same name at each attempt, as a real one would be."""
        drawn = hmac.digest(self._secret, name.encode(), "sha512")
        salt = base36(int.from_bytes(drawn, "big") >> (8 * len(drawn) - NONCE_BITS))
        return ScramCredential(salt.encode(), drawn, drawn, self.mechanism.min_iterations)


class ScramExchange:
    """The two steps of one client."""

    def __init__(self, scram: Scram) -> None:
        self._scram = scram
        self._principal: str | None = None
        self._credential: ScramCredential | None = None
        self._expires_at_ms: int | None = None
        self._nonce = ""
        self._said = ""

    def respond(self, token: bytes) -> Step:
        """Take the first message, then the proof. Raises InvalidCredentialsError, RefusedError."""
        if self._credential is None:
            return self._challenge(read_client_first(token))
        credential, self._credential = self._credential, None
        return self._check(credential, token)

    def _challenge(self, first: ClientFirst) -> Challenge:
        self._principal, credential, self._expires_at_ms = self._scram.look_up(first)
        if first.authorisation_id not in ("", first.name):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id "
                "that is different from username"
            )
        least = self._scram.mechanism.min_iterations
        if credential.iterations < least:
            raise InvalidCredentialsError(f"fewer iterations than {least} for a credential")
        self._credential = credential
        self._nonce = first.nonce + self._scram.nonce()
        challenge = server_first(self._nonce, credential)
        self._said = f"{first.bare},{challenge}"
        return Challenge(challenge.encode())

    def _check(self, credential: ScramCredential, token: bytes) -> Authenticated:
        final = read_client_final(token)
        if final.nonce != self._nonce:
            raise InvalidCredentialsError("the nonce is not that of this exchange")
        mechanism = self._scram.mechanism
        said = f"{self._said},{final.unproved}".encode()
        is_right = is_proved(mechanism, credential, said, final.proof)
        if not is_right or self._principal is None:
            raise InvalidCredentialsError("unknown name or wrong password")
        signature = base64.b64encode(signature_of(mechanism, credential.server_key, said))
        return Authenticated(self._principal, b"v=" + signature, self._expires_at_ms)


def base36(number: int) -> str:
    """As Java's BigInteger writes it: Apache Kafka's nonces and salts look like that."""
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits or "0"
