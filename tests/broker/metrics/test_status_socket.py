"""Answers of a broker's Unix socket, which no client can block for others."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from broker.metrics import status_socket
from broker.metrics.status_socket import STATUS, StatusSocket, ask
from broker.network.listener import ListenError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 60.0


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / ("long" * 40) / "broker0.sock")


@pytest.fixture
def served(path: str, tmp_path: Path) -> Iterator[StatusSocket]:
    (tmp_path / ("long" * 40)).mkdir()
    served = StatusSocket(path)
    yield served
    served.close()


def test_a_starting_broker_reports_that_it_does_not_serve(served: StatusSocket, path: str) -> None:
    assert json.loads(ask(path, STATUS, SECONDS)) == {"is_serving": False}
    assert ask(path, "metrics", SECONDS) == b""


def test_pages_of_any_size_are_served_by_name(served: StatusSocket, path: str) -> None:
    large = b"x" * 3_000_000
    served.serve({"large": lambda: large, "odd": lambda: b"%d" % (1 // 0)})
    assert ask(path, "large", SECONDS) == large
    assert ask(path, "nowhere", SECONDS) == b""
    assert ask(path, "odd", SECONDS) == b""  # and it goes on
    assert ask(path, "large", SECONDS) == large


def test_silent_and_oversized_clients_do_not_block_others(
    served: StatusSocket, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_socket, "TIMEOUT_SECONDS", 0.1)
    served.serve({STATUS: lambda: b"fine"})
    with socket.socket(socket.AF_UNIX) as silent, status_socket._reachable(path) as address:
        silent.connect(address)
        assert ask(path, STATUS, SECONDS) == b"fine"
    with suppress(ConnectionError):  # it may be hung up on before it has said all
        assert ask(path, "x" * 1_000_000, SECONDS) == b""
    assert ask(path, STATUS, SECONDS) == b"fine"


def test_only_its_user_may_ask(served: StatusSocket, tmp_path: Path) -> None:
    [file] = (tmp_path / ("long" * 40)).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_stale_socket_address_is_reused_and_one_in_use_is_not(tmp_path: Path) -> None:
    path = str(tmp_path / "broker0.sock")
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    served = StatusSocket(path)
    with pytest.raises(ListenError, match="Address already in use"):
        StatusSocket(path)
    assert json.loads(ask(path, STATUS, SECONDS)) == {"is_serving": False}
    served.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        ask(path, STATUS, SECONDS)


def test_a_missing_socket_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match=r"status\.socket: cannot listen on .*: No such file"):
        StatusSocket(str(tmp_path / "none" / "broker0.sock"))


def test_an_answer_that_comes_in_drops_has_to_be_whole_in_time(tmp_path: Path) -> None:
    path, has_given_up = str(tmp_path / "broker0.sock"), threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()

        def drip() -> None:
            client, _ = server.accept()
            with client, suppress(ConnectionError):
                while not has_given_up.wait(0.01):
                    client.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        with pytest.raises(TimeoutError):
            ask(path, STATUS, 0.1)
        has_given_up.set()
        dripping.join()
