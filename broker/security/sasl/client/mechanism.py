"""The port of SASL mechanisms at the side of a client: this broker, towards other brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """Name and password of this broker, or id and HMAC of a delegation token."""

    user: str
    password: str
    is_token: bool = False


class LoginError(Exception):
    """The other broker cannot be convinced, or does not convince; the text holds no secrets."""


class ClientExchange(Protocol):
    """One authentication at another broker."""

    async def first(self) -> bytes:
        """The first token."""

    async def respond(self, challenge: bytes) -> bytes | None:
        """The token that answers one of the server's; None when there is none to send.

        Asked for each, the one that comes with success included. Raises LoginError.
        """


class ClientMechanism(Protocol):
    """How this broker logs in at others."""

    @property
    def name(self) -> str:
        """As in SaslHandshake."""

    def exchange(self) -> ClientExchange:
        """Begin on a connection."""
