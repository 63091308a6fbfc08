"""Treatment of a new connection by a listener's security protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from broker.network.client import Client
from broker.network.listener_security import CLOSED, EndpointSecurity

if TYPE_CHECKING:
    from broker.network.connection import Connection


class Hung:
    """A connection, as far as a gate needs one."""

    reason = ""

    def close(self, reason: str = "") -> None:
        self.reason = reason


def client() -> Client:
    return Client("EXTERNAL", {})


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_listeners_without_sasl_have_no_gate(protocol: str) -> None:
    assert EndpointSecurity(protocol).gate(client()) is None


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_sasl_listeners_without_mechanisms_close_every_connection(protocol: str) -> None:
    security, hung = EndpointSecurity(protocol), Hung()

    gate = security.gate(client())

    assert gate is CLOSED
    gate.dispatch(memoryview(b"request"), client(), cast("Connection", hung))
    assert "nobody can be authenticated on EXTERNAL" in hung.reason


def test_each_client_gets_a_gate_of_its_own() -> None:
    security = EndpointSecurity("SASL_PLAINTEXT")
    assert security.gate(client()) is CLOSED

    security.gate_of = lambda _: None

    assert security.gate(client()) is None
