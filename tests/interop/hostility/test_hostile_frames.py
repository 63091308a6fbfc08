"""Malformed frames on a socket: the broker stays up and serves the next connection.

A frame that cannot be served closes its connection or is answered with an error; it never stops
another one, and never makes the broker allocate what the frame only claims to hold.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import protocol.messages
from protocol.schema import Request
from tests.support import wire
from tests.support.wire import ConnectionClosedError, RawConnection, framed, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

MOST_GROWTH_BYTES = 64 * 1024 * 1024
ANSWER_SECONDS = 0.3
SERVING_SECONDS = 60.0
EXAMPLES = 150
INT32_MAX = 2**31 - 1
UNSUPPORTED_VERSION = 35

each_example = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _client_requests() -> list[tuple[type[Request], int]]:
    for module in pkgutil.iter_modules(protocol.messages.__path__):
        importlib.import_module(f"protocol.messages.{module.name}")
    classes = sorted(Request.__subclasses__(), key=lambda request: request.API_KEY)
    return [(request, version) for request in classes for version in request.VERSIONS]


REQUESTS = _client_requests()
SILENT = {
    *(("ProduceRequest", version) for version in range(20)),
    ("AddPartitionsToTxnRequest", 4),
    ("AddPartitionsToTxnRequest", 5),
    ("DescribeAclsRequest", 0),
    ("DescribeAclsRequest", 3),
}
"""Requests that Apache leaves unanswered at all defaults: acks=0, no transactions, resource type
0."""


@pytest.fixture(scope="module")
def victim(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return a broker that only these tests mistreat."""
    broker = new_broker(tmp_path_factory.mktemp("victim"))
    broker.start()
    yield broker
    assert broker.is_running(), broker.output_tail()
    broker.kill()


def serves(broker: BrokerProcess) -> bool:
    """Say whether it answers on another connection, be the machine as busy as it may."""
    return wire.serves_api_versions(broker.port, SERVING_SECONDS)


def is_closed(connection: RawConnection, seconds: float = SERVING_SECONDS) -> bool:
    """Say whether the peer closes the connection within `seconds`, without an answer."""
    connection.socket.settimeout(seconds)
    try:
        return connection.socket.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def send_and_look(broker: BrokerProcess, data: bytes, seconds: float = ANSWER_SECONDS) -> None:
    """Send `data`; an answer must be whole frames; then the broker must serve another one."""
    with RawConnection.open(broker.port) as connection:
        connection.socket.settimeout(seconds)
        try:
            connection.send(data)
            connection.receive()
        except (ConnectionClosedError, ConnectionResetError, BrokenPipeError, TimeoutError):
            pass
        assert serves(broker), broker.output_tail()


def encoded(request: type[Request], version: int, correlation_id: int = 1) -> bytes:
    """Return a request with all fields at their defaults, with its header."""
    message: Any = request()
    flexible = version in request.FLEXIBLE
    tags = b"\0" if flexible else b""
    header = request_header(request.API_KEY, version, correlation_id)
    return header + tags + bytes(message.encode(version))


@pytest.mark.parametrize("length", [-1, -(2**31), INT32_MAX, 104_857_601], ids="length={}".format)
def test_impossible_length_closes_the_connection(victim: BrokerProcess, length: int) -> None:
    before = victim.resident_bytes()
    with RawConnection.open(victim.port) as connection:
        connection.send(struct.pack(">i", length) + b"x" * 100)

        assert is_closed(connection)

    assert serves(victim)
    assert victim.resident_bytes() - before < MOST_GROWTH_BYTES


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]
)
def test_another_protocol_closes_the_connection(victim: BrokerProcess, data: bytes) -> None:
    with RawConnection.open(victim.port) as connection:
        connection.send(data)

        assert is_closed(connection)


@pytest.mark.parametrize(
    ("api_key", "version"), [(9999, 0), (-1, 0), (3, 99), (0, -1), (1, 32767), (11, 100)]
)
def test_unknown_key_or_version_closes_the_connection(
    victim: BrokerProcess, api_key: int, version: int
) -> None:
    with RawConnection.open(victim.port) as connection:
        connection.send(framed(request_header(api_key, version) + b"\0" * 20))

        assert is_closed(connection)

    assert serves(victim)


def test_unknown_version_of_api_versions_is_answered_in_version_0(victim: BrokerProcess) -> None:
    with RawConnection.open(victim.port) as connection:
        answer = connection.ask(request_header(18, 99, 77) + b"\0" * 3)
        again = connection.ask(wire.api_versions_request(78))

    correlation_id, error_code, count, api_key = struct.unpack_from(">ihih", answer)
    assert (correlation_id, error_code, count, api_key) == (77, UNSUPPORTED_VERSION, 1, 18)
    assert len(answer) == 16
    assert struct.unpack_from(">ih", again) == (78, 0)


@pytest.mark.parametrize("count", [INT32_MAX, 1_000_000], ids="count={}".format)
@pytest.mark.parametrize(
    ("api_key", "version", "before"),
    [
        (3, 1, b""),
        (0, 3, struct.pack(">hhi", -1, -1, 1000)),
        (1, 4, struct.pack(">iiiib", -1, 1, 1, 1000, 0)),
        (19, 2, b""),
        (8, 2, struct.pack(">h1sih1sq", 1, b"g", -1, 1, b"m", -1)),
    ],
    ids=["metadata", "produce", "fetch", "create-topics", "offset-commit"],
)
def test_count_larger_than_the_frame_closes_the_connection(
    victim: BrokerProcess, api_key: int, version: int, before: bytes, count: int
) -> None:
    resident = victim.resident_bytes()
    with RawConnection.open(victim.port) as connection:
        body = before + struct.pack(">i", count) + b"\0" * 8
        connection.send(framed(request_header(api_key, version) + body))

        assert is_closed(connection)

    assert serves(victim)
    assert victim.resident_bytes() - resident < MOST_GROWTH_BYTES


def test_unfinished_frames_and_idle_connections_block_no_other_client(
    victim: BrokerProcess,
) -> None:
    stalled = [RawConnection.open(victim.port) for _ in range(200)]
    try:
        for number, connection in enumerate(stalled):
            connection.send(framed(encoded(*REQUESTS[number % len(REQUESTS)]))[: number % 40])

        assert serves(victim)
    finally:
        for connection in stalled:
            connection.socket.close()
    assert serves(victim)


def test_a_request_byte_by_byte_and_many_in_one_packet(victim: BrokerProcess) -> None:
    requests = [framed(wire.api_versions_request(number)) for number in range(50)]
    with RawConnection.open(victim.port) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(len(requests[0])):
            connection.send(requests[0][position : position + 1])
        connection.send(b"".join(requests[1:]))

        answers = [connection.receive() for _ in requests]

    assert [struct.unpack_from(">ih", answer) for answer in answers] == [
        (number, 0) for number in range(50)
    ]


@each_example
@given(data=st.binary(min_size=0, max_size=400))
def test_random_bytes_affect_no_other_client(victim: BrokerProcess, data: bytes) -> None:
    send_and_look(victim, data, 0.02)


@each_example
@given(key=st.integers(-5, 100), version=st.integers(-2, 20), body=st.binary(max_size=300))
def test_random_bodies_under_a_good_header(
    victim: BrokerProcess, key: int, version: int, body: bytes
) -> None:
    send_and_look(victim, framed(request_header(key, version) + body), 0.02)


@each_example
@given(which=st.integers(0, len(REQUESTS) - 1), seed=st.integers(0, 2**32), cut=st.booleans())
def test_damaged_good_requests(victim: BrokerProcess, which: int, seed: int, cut: bool) -> None:
    chance = random.Random(seed)
    content = bytearray(encoded(*REQUESTS[which]))
    for _ in range(chance.randrange(4)):
        content[chance.randrange(8, len(content))] = chance.randrange(256)
    if cut:
        del content[chance.randrange(8, len(content)) :]

    send_and_look(victim, framed(bytes(content)), 0.02)


def test_every_advertised_version_of_every_request_is_answered(victim: BrokerProcess) -> None:
    with RawConnection.open(victim.port) as connection:
        advertised = struct.iter_unpack(">hhh", connection.ask(wire.api_versions_request())[10:])
    ranges = {api_key: range(lowest, highest + 1) for api_key, lowest, highest in advertised}
    unanswered = []
    for request, version in REQUESTS:
        if version not in ranges.get(request.API_KEY, ()) or (request.__name__, version) in SILENT:
            continue
        with RawConnection.open(victim.port) as connection:
            try:
                answer = connection.ask(encoded(request, version, 4711))
            except (ConnectionClosedError, ConnectionResetError, TimeoutError) as error:
                unanswered.append((request.__name__, version, repr(error)))
                continue
        assert struct.unpack_from(">i", answer) == (4711,)
        response = request.RESPONSE
        has_tags = version in response.FLEXIBLE and request.API_KEY != wire.API_VERSIONS
        response.decode(version, memoryview(answer), 5 if has_tags else 4)

    assert unanswered == []
