"""A reserved port is the broker's, whether that is up or down."""

from __future__ import annotations

import socket

import pytest

from broker.embedded.machine.reserved_port import HOST, ReservedPort


def listen(port: int) -> socket.socket:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((HOST, port))
    listening.listen()
    return listening


def test_the_broker_listens_beside_the_reservation_again_and_again() -> None:
    port = ReservedPort()
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port.number))
        with listen(port.number), socket.create_connection((HOST, port.number)):
            pass
    port.release()


def test_a_reserved_port_cannot_be_bound_by_others() -> None:
    port = ReservedPort()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port.number))
    port.release()
    with socket.socket() as other:
        other.bind((HOST, port.number))
