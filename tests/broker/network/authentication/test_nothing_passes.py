"""Nothing but ApiVersions reaches a handler before its client is known: every API, every state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from protocol.api_keys import ApiKey
from tests.broker.network.authentication.doorstep import Doorstep
from tests.broker.security.sasl.sasl_frames import (
    CORRELATION_ID,
    api_versions,
    authenticate,
    handshake,
    plain,
)
from tests.support.wire import request_header

if TYPE_CHECKING:
    from collections.abc import Sequence

assert all_handlers.MODULES, "they register themselves when they are imported"

FIRST_SCRAM = b"n,,n=carol,r=nonce"
STATES = {
    "connected": [],
    "after ApiVersions": [api_versions()],
    "after SaslHandshake": [handshake()],
    "after SaslHandshake v0": [handshake(version=0)],
    "after both": [api_versions(), handshake()],
    "between two tokens": [handshake("SCRAM-SHA-256"), authenticate(FIRST_SCRAM)],
    "after a wrong password": [handshake(), authenticate(plain(password="guess"))],
    "after an unknown mechanism": [handshake("CRAM-MD5")],
}
BODIES = (b"", bytes(64), b"\xff" * 64)
REQUESTS = [
    (key, version)
    for key, route in sorted(ROUTES.items())
    for version in range(route.versions.first, route.versions.last + 1)
]


@pytest.mark.parametrize("state", STATES)
def test_no_request_passes_the_gate(state: str) -> None:
    for key, version in REQUESTS:
        if key == ApiKey.API_VERSIONS:
            continue
        for body in BODIES:
            door = Doorstep()
            for frame in STATES[state]:
                door.send(frame)
            before = list(door.passed)

            door.send(request_header(key, version, CORRELATION_ID) + b"\0" + body)
            door.send(request_header(key, version, CORRELATION_ID) + body)

            assert door.passed == before, (ApiKey(key).name, version)
            assert not door.is_admitted
            assert door.peer.principal == "User:ANONYMOUS"


def test_after_authentication_every_request_passes() -> None:
    assert len({key for key, _ in REQUESTS}) > 40
    for key, version in REQUESTS:
        door = Doorstep()
        door.send(handshake())
        door.send(authenticate(plain()))
        frame = request_header(key, version, CORRELATION_ID)

        door.send(frame)

        assert door.passed == [frame]


def test_during_reauthentication_no_request_passes() -> None:
    for key, version in REQUESTS:
        for again in _begun_again():
            door = Doorstep(max_reauth_ms=60_000)
            door.send(handshake())
            door.send(authenticate(plain()))
            for frame in again:
                door.send(frame)

            door.send(request_header(key, version, CORRELATION_ID))

            assert door.passed == [], (ApiKey(key).name, version)


def _begun_again() -> Sequence[list[bytes]]:
    wrong = authenticate(plain("bob", "bob-secret"))
    return [handshake()], [handshake("SCRAM-SHA-256")], [handshake(), wrong]
