"""Sockets with TLS, as kazoo waits for them."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest

from controller.zookeeper.sockets import Sockets, reason_of
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

NEVER_SECONDS = 3600.0


def _tls_pair(directory: Path) -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    authority = Authority()
    issued = authority.issue("localhost", directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.chain_file(), issued.key_file())
    ours, theirs = socket.socketpair()
    served: list[ssl.SSLSocket] = []
    thread = threading.Thread(
        target=lambda: served.append(context.wrap_socket(theirs, server_side=True))
    )
    thread.start()
    trusting = ssl.create_default_context(cadata=authority.pem())
    client = trusting.wrap_socket(ours, server_hostname="localhost")
    thread.join()
    return client, served[0]


def test_decrypted_bytes_make_a_tls_socket_ready_at_once(tmp_path: Path) -> None:
    sockets = Sockets(1.0, None, pytest.fail)
    client, server = _tls_pair(tmp_path)
    woken, waker = socket.socketpair()
    with client, server, woken, waker:
        server.sendall(b"first second")
        assert client.recv(5) == b"first"
        ready, *_ = sockets.select([client, woken], [], [], NEVER_SECONDS)
        assert ready == [client]
        waker.send(b"!")
        ready, *_ = sockets.select([client, woken], [], [], NEVER_SECONDS)
        assert ready == [client, woken]
        assert client.recv(7) == b" second"
        ready, *_ = sockets.select([client, woken], [], [], NEVER_SECONDS)
        assert ready == [woken]


def test_connection_errors_are_described_with_a_hint() -> None:
    plain = ssl.SSLError(1, "whatever")
    plain.reason = "WRONG_VERSION_NUMBER"
    assert reason_of(plain) == "WRONG_VERSION_NUMBER; is this ZooKeeper's secureClientPort?"
    assert reason_of(ConnectionResetError(104, "Connection reset by peer")) == (
        "[Errno 104] Connection reset by peer"
    )
    assert reason_of(TimeoutError()) == "TimeoutError"
