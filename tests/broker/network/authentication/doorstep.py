"""A client before the gate, without a socket: what it sends, and what gets past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from broker.network.authentication.gate import GateSettings, SaslGate
from broker.network.client import Client
from broker.requests.api_table import ROUTES
from broker.runtime.deferred import Deferred
from broker.security.sasl.conversation import Terms
from broker.security.sasl.plain import PlainMechanism
from protocol.api_keys import ApiKey
from tests.broker.security.sasl.sasl_frames import PASSWORDS, SettableClock
from tests.broker.security.sasl.scram_users import Users, server

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.connection_services import Gate
    from broker.security.sasl.mechanism import Mechanism

LISTED = [b"\0\0\0\x06\0\0\0\x07\0\0"]
"""An answer to ApiVersions: size, correlation id, no error."""
PASSED = [b"passed"]
USERS = Users({"carol": "carol-secret"})
MECHANISMS: dict[str, Mechanism] = {
    "PLAIN": PlainMechanism(PASSWORDS),
    "SCRAM-SHA-256": server(USERS),
}


class Timeouts:
    """Timers that a test lets run out."""

    def __init__(self) -> None:
        self.due: list[Callable[[], object]] = []

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> None:
        self.due.append(callback)

    def run_out(self) -> None:
        due, self.due = self.due, []
        for callback in due:
            callback()


class Doorstep:
    """Stands for the connection, its dispatcher and what they are made of."""

    max_request_bytes = 1_000_000

    def __init__(self, max_reauth_ms: int = 0) -> None:
        self.clock = SettableClock()
        self.timers = Timeouts()
        limits = dict.fromkeys(MECHANISMS, max_reauth_ms)
        requests = {key: route.request for key, route in ROUTES.items()}
        terms = Terms(MECHANISMS, limits, self.clock, requests)
        settings = GateSettings(terms, cast("Any", self.timers), 1000, 100)
        self.peer = Client("SASL", {})
        self.gate: Gate | None = SaslGate(settings)
        self.passed: list[bytes] = []
        self.answers: list[Any] = []
        self.is_closed = False
        self.is_admitted = False

    @property
    def services(self) -> Doorstep:
        return self

    @property
    def dispatcher(self) -> Doorstep:
        return self

    def dispatch(self, frame: memoryview, peer: Client, connection: object) -> list[bytes]:
        """Stand for the handlers behind the gate."""
        self.passed.append(bytes(frame))
        return LISTED if frame[:2] == int(ApiKey.API_VERSIONS).to_bytes(2, "big") else PASSED

    def guard(self, gate: Gate) -> None:
        self.gate = gate

    def admit(self) -> None:
        self.gate = None
        self.is_admitted = True

    def rest(self, milliseconds: int) -> None:
        """The timers run out when the test says."""

    def close(self, reason: str, last: list[bytes] | None = None) -> None:
        self.is_closed = True
        if last is not None:
            self.answers.append(last)

    def send(self, frame: bytes) -> None:
        if self.is_closed:
            return
        gate = self.gate or self
        answer = gate.dispatch(memoryview(frame), self.peer, cast("Any", self))
        self.answers.append(answer.value if isinstance(answer, Deferred) else answer)
