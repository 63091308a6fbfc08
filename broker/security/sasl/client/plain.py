"""PLAIN at the side of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.security.sasl.plain import PLAIN

if TYPE_CHECKING:
    from broker.security.sasl.client.mechanism import Login


class PlainClient:
    """Sends name and password; also the exchange, as it has one step."""

    name = PLAIN

    def __init__(self, login: Login) -> None:
        self._token = f"\0{login.user}\0{login.password}".encode()

    def exchange(self) -> PlainClient:
        """Return itself: no state is kept between steps."""
        return self

    async def first(self) -> bytes:
        """All there is to say."""
        return self._token

    async def respond(self, challenge: bytes) -> None:
        """The server has nothing to say but yes."""
