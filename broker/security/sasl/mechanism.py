"""The port of SASL mechanisms.

A mechanism is made once for a listener. It begins an `Exchange` for each client, which is given the
client's tokens, one after the other, until it answers `Authenticated` or raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.runtime.deferred import Deferred


class InvalidCredentialsError(Exception):
    """The client is refused; the answer says only that its credentials are invalid.

    The text is for the log: no secrets, and nothing that the client sent unquoted. Apache Kafka's
    `SaslException`.
    """


class RefusedError(Exception):
    """The client is refused with this text. Apache Kafka's `SaslAuthenticationException`."""


@dataclass(frozen=True, slots=True, repr=False)
class Challenge:
    """A token that the client has to answer."""

    token: bytes


@dataclass(frozen=True, slots=True, repr=False)
class Authenticated:
    """The client is authenticated."""

    principal: str
    """Such as `User:alice`; a `TokenPrincipal` if it logged in with a delegation token."""
    token: bytes | None = b""
    """The last one for the client; None for none, which only a client without headers notices."""
    expires_at_ms: int | None = None
    """Wall clock at which its credential ends, if it does."""


Step = Challenge | Authenticated


class Exchange(Protocol):
    """The authentication of one client."""

    def respond(self, token: bytes) -> Step | Deferred[Step]:
        """Take the client's next token, the first included.

        Raises InvalidCredentialsError or RefusedError, or a Deferred fails with them. What takes
        longer than a millisecond answers with a Deferred.
        """


class Mechanism(Protocol):
    """One mechanism as a listener has it."""

    @property
    def name(self) -> str:
        """As clients call it, such as `SCRAM-SHA-256`."""

    def exchange(self) -> Exchange:
        """Begin with a new client, or with one that authenticates again."""
