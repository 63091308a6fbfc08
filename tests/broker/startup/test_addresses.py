"""Advertised hosts that this machine does not know: a warning, which nothing waits for."""

from __future__ import annotations

import logging
import re
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from broker.__main__ import main
from broker.app import Broker
from broker.runtime.addresses.host_names import THREAD_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from broker.startup.addresses import Addresses
    from broker.startup.parts import Parts

UNKNOWN = "known-to-clients-only.invalid"
JOIN_SECONDS = 60


class NameServer:
    """Knows nothing of `UNKNOWN`, and says so when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_answer = threading.Event()
        self._ask = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self.look_up)

    def look_up(self, host: Any, *args: Any, **kwargs: Any) -> Any:
        if host != UNKNOWN:
            return self._ask(host, *args, **kwargs)
        assert self.may_answer.wait(JOIN_SECONDS)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    serve = Broker._serve

    async def serve_and_stop(broker: Broker, addresses: Addresses, parts: Parts) -> None:
        await serve(broker, addresses, parts)
        broker.stop()

    monkeypatch.setattr(Broker, "_serve", serve_and_stop)
    return NameServer(monkeypatch)


def run(directory: Path, advertised: str) -> int:
    """Start a broker that stops as soon as it serves."""
    config = directory / "server.properties"
    config.write_text(
        "broker.id=0\nlisteners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT\n"
        "inter.broker.listener.name=INSIDE\n"
        f"advertised.listeners={advertised}\nlog.dirs={directory}/data\n"
    )
    return main(["--config", str(config)])


def wait_for_look_up() -> None:
    """Wait until the thread has ended, if there still is one."""
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(JOIN_SECONDS)
            assert not thread.is_alive()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_an_advertised_host_without_an_address_is_warned_of_and_not_waited_for(
    name_server: NameServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(tmp_path, f"INSIDE://127.0.0.1:9092,OUTSIDE://{UNKNOWN}:9093") == 0
    assert warnings(caplog) == [], "it has started, served and stopped meanwhile"

    name_server.may_answer.set()
    wait_for_look_up()

    [warning] = warnings(caplog)
    assert warning.startswith(f"listener OUTSIDE: the advertised host {UNKNOWN} does not resolve")


@pytest.mark.usefixtures("name_server")
def test_the_ready_line_names_bound_and_differing_advertised_addresses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "broker")
    run(tmp_path, "INSIDE://127.0.0.1:9092,OUTSIDE://localhost:9093")
    wait_for_look_up()

    [ready] = [text for one in caplog.records if " ready on " in (text := one.getMessage())]
    assert re.search(
        r"ready on INSIDE://127\.0\.0\.1:\d+, OUTSIDE://127\.0\.0\.1:\d+ "
        r"\(advertised as INSIDE://127\.0\.0\.1:9092, OUTSIDE://localhost:9093\) in \d+ ms",
        ready,
    )


def test_resolvable_advertised_hosts_cause_no_warning(
    name_server: NameServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(tmp_path, "INSIDE://127.0.0.1:9092,OUTSIDE://localhost:9093") == 0
    wait_for_look_up()

    assert warnings(caplog) == []
