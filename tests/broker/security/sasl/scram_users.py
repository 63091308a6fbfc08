"""Users and tokens in memory, and both sides of SCRAM with them."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from broker.security.sasl.client.mechanism import Login
from broker.security.sasl.client.scram import ScramClient
from broker.security.sasl.credentials import Credentials, TokenCredential
from broker.security.sasl.scram import Scram
from protocol.scram_types import ScramCredential, ScramMechanism, credential_from, salted_password

if TYPE_CHECKING:
    from collections.abc import Callable

SALT = b"a salt that is long"
ITERATIONS = 4096
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


class Users:
    """Passwords of users, and one delegation token: `token-id`, of alice."""

    def __init__(self, passwords: dict[str, str], iterations: int = ITERATIONS) -> None:
        self.passwords = passwords
        self.iterations = iterations
        self.token_hmac = "aG1hYw=="

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        password = self.passwords.get(user)
        return None if password is None else self._derived(mechanism, password)

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        if token_id != "token-id":
            return None
        return TokenCredential("User:alice", self._derived(mechanism, self.token_hmac), 12_345)

    def _derived(self, mechanism: ScramMechanism, password: str) -> ScramCredential:
        salted = salted_password(mechanism, password.encode(), SALT, self.iterations)
        return credential_from(mechanism, salted, SALT, self.iterations)


def server(users: Users, mechanism: ScramMechanism = SHA_256) -> Scram:
    return Scram(mechanism, Credentials(users, users), secrets.randbits)


def client(
    user: str,
    password: str,
    mechanism: ScramMechanism = SHA_256,
    *,
    is_token: bool = False,
    computed: list[int] | None = None,
) -> ScramClient:
    """`computed` gets an entry for each time that a password is salted."""

    async def at_once(work: Callable[[], bytes]) -> bytes:
        if computed is not None:
            computed.append(1)
        return await asyncio.to_thread(work)

    login = Login(user, password, is_token=is_token)
    return ScramClient(mechanism, login, secrets.randbits, at_once)
