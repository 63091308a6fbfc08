"""GSSAPI at the side of the server.

    client                          server
    ticket and authenticator   ->   checks it; may answer, for the client to check
    (nothing)                  ->   offers no protection of further messages: TLS is for that
    takes the offer            ->   has the client's name

The library waits for the disk (its replay cache); so all its calls are made on a thread.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from broker.security.kerberos.principal_names import NoLocalNameError
from broker.security.principal import user
from broker.security.sasl.mechanism import Authenticated, Challenge, InvalidCredentialsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.deferred import Deferred
    from broker.security.kerberos.principal_names import PrincipalNames
    from broker.security.sasl.mechanism import Step

GSSAPI = "GSSAPI"
NO_PROTECTION = 1
"""The only quality of protection that is offered, as a bit."""
OFFER = bytes([NO_PROTECTION, 0, 0, 0])
"""No protection, and the size of the largest message: none."""


class SecurityContext(Protocol):
    """Context negotiated with a client. Methods block, and raise InvalidCredentialsError."""

    def step(self, token: bytes) -> bytes:
        """Take the client's token; returns one for the client, which may be empty."""

    @property
    def is_established(self) -> bool:
        """True if the negotiation is complete."""

    @property
    def client(self) -> str:
        """The client's principal, once it is established."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message."""

    def unwrap(self, token: bytes) -> bytes:
        """Check a message of the client."""


class Phase(Enum):
    """Phase of an exchange."""

    AGREEING = auto()
    AGREED = auto()
    OFFERED = auto()
    OVER = auto()


class GssapiMechanism:
    """GSSAPI of one listener."""

    name = GSSAPI

    def __init__(
        self,
        new_context: Callable[[], SecurityContext],
        names: PrincipalNames,
        on_thread: Callable[[Callable[[], Step]], Deferred[Step]],
    ) -> None:
        self._new_context = new_context
        self._names = names
        self._on_thread = on_thread

    def exchange(self) -> GssapiExchange:
        """Begin with a client."""
        return GssapiExchange(self._new_context(), self._names, self._on_thread)


class GssapiExchange:
    """The authentication of one client."""

    def __init__(
        self,
        context: SecurityContext,
        names: PrincipalNames,
        on_thread: Callable[[Callable[[], Step]], Deferred[Step]],
    ) -> None:
        self._context = context
        self._names = names
        self._on_thread = on_thread
        self._phase = Phase.AGREEING

    def respond(self, token: bytes) -> Deferred[Step]:
        """Take the client's token; the Deferred fails with InvalidCredentialsError."""
        return self._on_thread(lambda: self._step(token))

    def _step(self, token: bytes) -> Step:
        steps = {
            Phase.AGREEING: self._agree,
            Phase.AGREED: self._offer,
            Phase.OFFERED: self._end,
        }
        if self._phase not in steps:
            raise InvalidCredentialsError("the exchange is over")
        phase, self._phase = self._phase, Phase.OVER  # unless this step succeeds
        return steps[phase](token)

    def _agree(self, token: bytes) -> Step:
        if not token:
            raise InvalidCredentialsError("no ticket")
        answer = self._context.step(token)
        if not self._context.is_established:
            self._phase = Phase.AGREEING
            return Challenge(answer)
        if answer:
            self._phase = Phase.AGREED
            return Challenge(answer)
        return self._offer(b"")

    def _offer(self, token: bytes) -> Step:
        if token:
            raise InvalidCredentialsError("a token where none is due")
        offer = self._context.wrap(OFFER)
        self._phase = Phase.OFFERED
        return Challenge(offer)

    def _end(self, token: bytes) -> Step:
        chosen = self._context.unwrap(token)
        if len(chosen) < len(OFFER) or chosen[0] != NO_PROTECTION:
            raise InvalidCredentialsError("the client wants what it was not offered")
        try:
            # As in Apache Kafka, the authorization id of the client is ignored.
            return Authenticated(user(self._names.local_name(self._context.client)))
        except NoLocalNameError as error:
            raise InvalidCredentialsError(str(error)) from None
