"""Asking a broker whether it answers, by its property file."""

from __future__ import annotations

import socket
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from broker.health.__main__ import main
from broker.runtime.addresses.listening_socket import listening_socket
from tests.support.brokers.ipv6 import LOOPBACK_ZONE, needs_ipv6

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWER = struct.pack(">iih", 10, 42, 0) + bytes(4)


class Peer:
    """Takes one connection, reads a request, and says something."""

    def __init__(self, answer: bytes, host: str = "127.0.0.1") -> None:
        self._listener = listening_socket(host, 0)
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self.heard = b""
        self._answer = answer
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, self._listener:
            self.heard = connection.recv(1000)
            connection.sendall(self._answer)


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:  # bound, so nobody else listens there
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def _file(directory: Path, listeners: str) -> str:
    path = directory / "server.properties"
    path.write_text(f"listeners={listeners}\nlog.dirs={directory}/data\n")
    return str(path)


def test_a_broker_that_answers_is_well(tmp_path: Path) -> None:
    peer = Peer(ANSWER)
    assert main(["--config", _file(tmp_path, f"PLAINTEXT://127.0.0.1:{peer.port}")]) == 0
    peer.thread.join()
    assert struct.unpack(">ihhih", peer.heard) == (10, 18, 0, 42, -1)


@pytest.mark.parametrize(
    "host", ["", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "localhost", "127.1"]
)
def test_broker_is_asked_at_its_address_however_it_is_written(host: str, tmp_path: Path) -> None:
    peer = Peer(ANSWER)
    assert main(["--config", _file(tmp_path, f"PLAINTEXT://{host}:{peer.port}")]) == 0
    peer.thread.join()


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", f"::1%{LOOPBACK_ZONE}"])
def test_broker_is_asked_at_an_ipv6_address(host: str, tmp_path: Path) -> None:
    peer = Peer(ANSWER, host)
    assert main(["--config", _file(tmp_path, f"PLAINTEXT://[{host}]:{peer.port}")]) == 0
    peer.thread.join()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400", struct.pack(">ii", 4, 43)])
def test_a_malformed_answer_is_unhealthy(
    answer: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = Peer(answer)
    assert main(["--config", _file(tmp_path, f"PLAINTEXT://127.0.0.1:{peer.port}")]) == 1
    peer.thread.join()
    assert f"PLAINTEXT://127.0.0.1:{peer.port} does not answer" in capsys.readouterr().err


def test_a_refused_connection_is_unhealthy(
    tmp_path: Path, closed_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _file(tmp_path, f"PLAINTEXT://127.0.0.1:{closed_port}")
    assert main(["--config", path]) == 1
    assert "does not answer: [Errno 111] Connection refused" in capsys.readouterr().err


def test_a_listener_without_tls_is_asked_first(tmp_path: Path) -> None:
    peer = Peer(ANSWER)
    path = _file(tmp_path, f"SSL://127.0.0.1:1,PLAINTEXT://:{peer.port}")
    assert main(["--config", path]) == 0
    peer.thread.join()


def test_an_invalid_property_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", _file(tmp_path, "nonsense")]) == 1
    assert "listeners" in capsys.readouterr().err
