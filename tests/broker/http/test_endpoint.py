"""An address at which something is served over HTTP: what one client may take from others."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from broker.http import endpoint
from broker.http.endpoint import HttpEndpoint, say
from tests.support.brokers.ipv6 import LOOPBACK_ZONE, needs_ipv6

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIEnvironment

LIMIT_SECONDS = 0.3
PAUSE_SECONDS = 0.02
MOST_BYTES = 1000
"""Sent one by one, they take much longer than the limit."""


def greet(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    name = unquote(environ["QUERY_STRING"], errors="surrogateescape")
    return say("200 OK", f"hello{name}", start_response)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpEndpoint]:
    monkeypatch.setattr(endpoint, "TIMEOUT_SECONDS", LIMIT_SECONDS)
    served = HttpEndpoint("test", "127.0.0.1", 0)
    served.serve(greet)
    yield served
    served.close()


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", f"::1%{LOOPBACK_ZONE}", "::", "", "0.0.0.0"])
def test_endpoint_at_an_ipv6_address_is_reached_there(host: str) -> None:
    served = HttpEndpoint("test", host, 0)
    served.serve(greet)
    try:
        with urllib.request.urlopen(f"http://[::1]:{served.port}") as answer:
            assert answer.read() == b"hello"
    finally:
        served.close()


@pytest.mark.parametrize("host", ["::ffff:127.0.0.1", "", "127.1"])
def test_endpoint_at_an_ipv4_address_is_reached_however_it_is_written(host: str) -> None:
    served = HttpEndpoint("test", host, 0)
    served.serve(greet)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served.port}") as answer:
            assert answer.read() == b"hello"
    finally:
        served.close()


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\n"])
def test_client_that_sends_a_byte_now_and_then_is_not_waited_for(
    served: HttpEndpoint, begin: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as slow:
        slow.sendall(begin)
        with contextlib.suppress(ConnectionError):
            for sent in itertools.count():
                assert sent < MOST_BYTES, "it would be waited for as long as it likes"
                slow.sendall(b"x")
                if select.select([slow], [], [], PAUSE_SECONDS)[0] and not slow.recv(1):
                    break

    with urllib.request.urlopen(served.url) as answer:
        assert answer.read() == b"hello"


def test_undecodable_query_bytes_are_escaped_in_the_answer(served: HttpEndpoint) -> None:
    with urllib.request.urlopen(f"{served.url}/?%FFx") as answer:
        assert answer.read() == rb"hello\udcffx"
