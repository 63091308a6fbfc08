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
        """Response to a token of the server; None if there is none to send.

        Called for each, including the one that comes with success. Raises LoginError.
        """


class ClientMechanism(Protocol):
    """Mechanism by which this broker authenticates to others."""

    @property
    def name(self) -> str:
        """As in SaslHandshake."""

    def exchange(self) -> ClientExchange:
        """Begin on a connection."""
