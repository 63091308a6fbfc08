"""SCRAM at the side of a client: it proves the password, and has the server prove that it knows it.

Salting the password takes milliseconds on a thread. It is done once for a salt, which the server
keeps to as long as the password is the same.
"""

from __future__ import annotations

import base64
import hmac
from functools import partial
from typing import TYPE_CHECKING

from broker.security.sasl.client.mechanism import LoginError
from broker.security.sasl.mechanism import InvalidCredentialsError
from broker.security.sasl.scram import NONCE_BITS, base36
from broker.security.sasl.scram_keys import proof_of, signature_of
from broker.security.sasl.scram_messages import (
    NO_BINDING,
    ServerFirst,
    escaped,
    read_server_final,
    read_server_first,
)
from protocol.scram_types import ScramMechanism, credential_from, salted_password

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.security.sasl.client.mechanism import Login

    OnThread = Callable[[Callable[[], bytes]], Awaitable[bytes]]

MAX_ITERATIONS = 1_000_000
"""More are not computed on a server's word: half a second of a thread. Fixed, as no one has a
reason for them: AlterUserScramCredentials takes 16,384 at most."""


class ScramClient:
    """One of the two mechanisms, with the name and the password of this broker."""

    def __init__(
        self,
        mechanism: ScramMechanism,
        login: Login,
        draw_bits: Callable[[int], int],
        on_thread: OnThread,
    ) -> None:
        """`draw_bits` draws a number of that many bits, `on_thread` computes on a thread."""
        self.mechanism = mechanism
        self.name = mechanism.mechanism_name
        self.user = escaped(login.user)
        self.extensions = ",tokenauth=true" if login.is_token else ""
        self._password = login.password.encode()
        self._draw_bits = draw_bits
        self._on_thread = on_thread
        self._salted: tuple[bytes, int, bytes] | None = None
        """Salt, iterations, and what came of them the last time."""

    def exchange(self) -> ScramClientExchange:
        """Begin on a connection."""
        return ScramClientExchange(self, base36(self._draw_bits(NONCE_BITS)))

    async def salted(self, salt: bytes, iterations: int) -> bytes:
        """The salted password."""
        kept = self._salted
        if kept is not None and kept[:2] == (salt, iterations):
            return kept[2]
        work = partial(salted_password, self.mechanism, self._password, salt, iterations)
        made = await self._on_thread(work)
        self._salted = (salt, iterations, made)
        return made


class ScramClientExchange:
    """The three messages of one authentication."""

    def __init__(self, client: ScramClient, nonce: str) -> None:
        self._client = client
        self._nonce = nonce
        self._bare = f"n={client.user},r={nonce}{client.extensions}"
        self._signature: bytes | None = None
        """Server signature to expect in the end; None until the server asked for the proof."""

    async def first(self) -> bytes:
        """The name."""
        return f"n,,{self._bare}".encode()

    async def respond(self, challenge: bytes) -> bytes | None:
        """The proof; then the check of the server's. Raises LoginError."""
        try:
            if self._signature is None:
                return await self._prove(challenge, read_server_first(challenge))
            shown = read_server_final(challenge)
        except InvalidCredentialsError as error:
            raise LoginError(str(error)) from None
        if not hmac.compare_digest(shown, self._signature):
            raise LoginError("the server does not know the password")
        return None

    async def _prove(self, challenge: bytes, first: ServerFirst) -> bytes:
        if not first.nonce.startswith(self._nonce) or first.nonce == self._nonce:
            raise LoginError("the server's nonce does not continue this exchange")
        mechanism = self._client.mechanism
        if not mechanism.min_iterations <= first.iterations <= MAX_ITERATIONS:
            raise LoginError(f"the server wants {first.iterations} iterations")
        salted = await self._client.salted(first.salt, first.iterations)
        unproved = f"c={NO_BINDING},r={first.nonce}"
        said = f"{self._bare},{challenge.decode()},{unproved}".encode()
        server_key = credential_from(mechanism, salted, first.salt, first.iterations).server_key
        self._signature = signature_of(mechanism, server_key, said)
        proof = base64.b64encode(proof_of(mechanism, salted, said)).decode()
        return f"{unproved},p={proof}".encode()
