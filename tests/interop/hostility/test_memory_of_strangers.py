"""Memory that strangers can make a broker hold: by claims, silence, deafness and large frames.

Measured on a quiet machine, with 1,000 partitions and all of it at full size (2,000 idle
connections, 200 of each other kind): 41 MB before, 57 beside the idle ones, 69 beside the deaf
ones, 335 beside 90 MB frames with `queued.max.request.bytes` at 256 MB, 60 after.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING

import pytest

from protocol.messages.produce import ProduceRequest
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.interop.conftest import against_apache
from tests.support import wire
from tests.support.wire import RawConnection, framed, request_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

    Strangers = Callable[[int], list[socket.socket]]

pytestmark = pytest.mark.skipif(against_apache(), reason="it is our broker's memory")

MIB = 1 << 20
REQUEST_MEMORY_BYTES = 32 * MIB
LARGE_FRAME_BYTES = 16 * MIB
SOCKET_BYTES = MIB // 8
"""The system's buffers of a connection, which would else hold as much as the machine is set to."""
LEFT_BYTES = 20 * MIB
"""Bound on the growth that may remain when all have gone."""
ROUNDS_AT_REST = 20
"""Rounds of questions between which a broker receives no other request: it reads no more."""
RELEASE_SECONDS = 30.0
NO_ERROR = struct.pack(">ih", 0, 0)
"""Partition 0 and its error code."""
METADATA_OF_ALL = request_header(wire.METADATA, 1) + struct.pack(">i", -1)


@pytest.fixture(scope="module")
def host(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return a broker that strangers may reach, with a topic of 200 partitions."""
    limits = {
        "queued.max.request.bytes": str(REQUEST_MEMORY_BYTES),
        "socket.request.max.bytes": str(REQUEST_MEMORY_BYTES),
        "socket.receive.buffer.bytes": str(SOCKET_BYTES),
    }
    broker = new_broker(tmp_path_factory.mktemp("host"), limits)
    broker.start()
    with RawConnection.open(broker.port, 60.0) as connection:
        name = struct.pack(">h", 4) + b"wide"
        topic = struct.pack(">i", 1) + name + struct.pack(">ihii", 200, 1, 0, 0)
        connection.ask(request_header(19, 1) + topic + struct.pack(">ib", 60_000, 0))
        for _ in range(100):
            connection.ask(METADATA_OF_ALL)
    yield broker
    assert broker.is_running(), broker.output_tail()
    broker.kill()


@pytest.fixture
def strangers(host: BrokerProcess) -> Iterator[Strangers]:
    """Open connections whose ends hold little of what the other one does not read."""
    with contextlib.ExitStack() as opened:

        def arrive(count: int) -> list[socket.socket]:
            address = ("127.0.0.1", host.port)
            return [
                opened.enter_context(small(socket.create_connection(address, RELEASE_SECONDS)))
                for _ in range(count)
            ]

        yield arrive


def small(connection: socket.socket) -> socket.socket:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    return connection


def leave(broker: BrokerProcess, sockets: list[socket.socket], before: int) -> None:
    """Hang up; the broker must give back what they took, and serve."""
    for one in sockets:
        one.close()
    deadline = time.monotonic() + RELEASE_SECONDS
    while broker.resident_bytes() - before > LEFT_BYTES:
        assert time.monotonic() < deadline, (before, broker.resident_bytes())
        time.sleep(0.1)
    assert wire.serves_api_versions(broker.port, RELEASE_SECONDS)


def test_claimed_frame_sizes_allocate_only_received_bytes(
    host: BrokerProcess, strangers: Strangers
) -> None:
    before = host.resident_bytes()
    claiming = strangers(50)
    for one in claiming:
        one.sendall(struct.pack(">i", REQUEST_MEMORY_BYTES) + bytes(8))
    assert wire.serves_api_versions(host.port, RELEASE_SECONDS)

    assert host.resident_bytes() - before < LEFT_BYTES
    leave(host, claiming, before)


def test_idle_connections_cost_little_and_leave_nothing(
    host: BrokerProcess, strangers: Strangers
) -> None:
    before = host.resident_bytes()
    idle = strangers(500)
    for one in idle:
        one.sendall(framed(METADATA_OF_ALL)[:10])
    assert wire.serves_api_versions(host.port, RELEASE_SECONDS)

    assert host.resident_bytes() - before < LEFT_BYTES
    leave(host, idle, before)


def test_answers_to_clients_that_do_not_read_are_not_made(
    host: BrokerProcess, strangers: Strangers
) -> None:
    before = host.resident_bytes()
    requests = framed(METADATA_OF_ALL) * 2_000
    deaf = strangers(50)
    for one in deaf:
        one.sendall(requests)
    with RawConnection.open(host.port, RELEASE_SECONDS) as connection:
        for _ in range(100):
            connection.ask(METADATA_OF_ALL)

    assert host.resident_bytes() - before < LEFT_BYTES + 50 * MIB // 4
    leave(host, deaf, before)


def test_large_frames_together_stay_within_queued_max_request_bytes(
    host: BrokerProcess, strangers: Strangers
) -> None:
    before = host.resident_bytes()
    stalled = strangers(20)
    sent_bytes = send_as_much_as_is_read(host, stalled)
    assert REQUEST_MEMORY_BYTES <= sent_bytes < len(stalled) * LARGE_FRAME_BYTES
    kept_bytes = len(stalled) * 2 * MIB
    held = host.resident_bytes() - before
    assert held < REQUEST_MEMORY_BYTES + 2 * LARGE_FRAME_BYTES + kept_bytes

    with RawConnection(strangers(1)[0]) as waiting:
        large = framed(wire.api_versions_request() + bytes(4 * MIB))
        waiting.socket.setblocking(False)
        taken = waiting.socket.send(large)
        assert taken < len(large), "there is no room for all of it before the others leave"
        leave(host, stalled, before)
        waiting.socket.settimeout(RELEASE_SECONDS)
        waiting.send(large[taken:])
        assert struct.unpack_from(">i", waiting.receive()) == (1,)


def send_as_much_as_is_read(broker: BrokerProcess, stalled: list[socket.socket]) -> int:
    """Send all but the end of a large frame on each connection, until the broker reads no more."""
    rest = LARGE_FRAME_BYTES - MIB
    left = dict.fromkeys(stalled, memoryview(bytes(rest)))
    for one in stalled:
        one.setblocking(False)
        one.send(struct.pack(">i", LARGE_FRAME_BYTES))
    rounds_without = 0
    while rounds_without < ROUNDS_AT_REST:
        before = sum(map(len, left.values()))
        for one, data in left.items():
            with contextlib.suppress(BlockingIOError):
                left[one] = data[one.send(data) :]
        assert wire.serves_api_versions(broker.port, RELEASE_SECONDS)
        rounds_without = 0 if sum(map(len, left.values())) < before else rounds_without + 1
    return len(stalled) * rest - sum(map(len, left.values()))


def test_batches_that_decompress_to_much_leave_nothing(
    host: BrokerProcess, strangers: Strangers
) -> None:
    before = host.resident_bytes()
    senders = strangers(4)
    for size in (30_000_000, 60_000_000, 10_000_000):
        record = NewRecord(0, None, bytes(size))
        frame = produce_frame(bytes(build_batch([record], codec=Codec.ZSTD)))
        for one in senders:
            one.sendall(frame)
    for one in senders:
        connection = RawConnection(one)
        one.settimeout(RELEASE_SECONDS)
        for _ in range(3):
            assert NO_ERROR in connection.receive()

    leave(host, senders, before)


def produce_frame(batch: bytes) -> bytes:
    kind = ProduceRequest.TopicData
    data = kind.PartitionData(index=0, records=batch)
    topic = kind(name="wide", partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    return framed(request_header(int(request.API_KEY), 8) + request.encode(8))
