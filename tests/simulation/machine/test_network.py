"""The simulated network itself: what it may not do to a stream of bytes, and what it says of it."""

from __future__ import annotations

import asyncio
import contextvars
from random import Random
from typing import TYPE_CHECKING, cast

import pytest

from broker.partitions.partition import Partition
from broker.runtime.timers import Timers
from config.topic import TopicConfig
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.replica_fetchers.harness import surroundings
from tests.simulation.checks.promptness import Promptness
from tests.simulation.checks.refusals import REPORTS
from tests.simulation.clients.pipeline import SIZE_BYTES, Answer, Pipeline
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.machine.hosts import HOST, Host
from tests.simulation.machine.network import READ_BYTES, Network
from tests.simulation.machine.sockets import SOCKETS, End
from tests.simulation.machine.virtual_loop import VirtualLoop
from tests.storage.produced import TOPIC_ID, append, batch
from tests.support.broker_parts.services import logs_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator


PORT = 9092
LATENCY_MS = 1.0, 5.0
VERSION = 8
ANSWER = MetadataResponse(brokers=[], cluster_id=None, controller_id=1, topics=[]).encode(VERSION)


class Server(asyncio.BufferedProtocol):
    """Answers the first request that it has received whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._scratch = bytearray(READ_BYTES)
        self._received = b""

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        self._received += self._scratch[:nbytes]
        if len(self._received) == SIZE_BYTES + int.from_bytes(self._received[:SIZE_BYTES], "big"):
            correlation_id = self._received[8:12]  # behind size, API key and version
            frame = correlation_id + ANSWER
            self._transport.write(len(frame).to_bytes(SIZE_BYTES, "big") + frame)


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    SOCKETS.clear()
    loop.close()


def network_of(loop: VirtualLoop, seed: int = 0) -> Network:
    network = Network(loop, Random(seed), LATENCY_MS)
    network.lag_seconds = 0.0
    loop.network = network
    return network


def connected_ends(network: Network) -> tuple[End, End]:
    ours, theirs = (End(network, Host(name), PORT) for name in ("ours", "theirs"))
    ours.peer, theirs.peer = theirs, ours
    return ours, theirs


@pytest.mark.parametrize("seed", range(20))
def test_nothing_arrives_after_lost_bytes(loop: VirtualLoop, seed: int) -> None:
    network = network_of(loop, seed)
    ours, theirs = connected_ends(network)
    ours.send(b"lost, as it is under way")

    network.break_off(ours)
    ours.send(b"sent before either end has heard of that")
    theirs.send(b"as is this")
    loop.run_until_complete(asyncio.sleep(1))

    assert not theirs.inbox
    assert not ours.inbox
    assert theirs.error is not None
    assert ours.error is not None


async def ask(loop: VirtualLoop, network: Network, names: list[str]) -> Answer:
    """The answer to a request that holds so many names."""
    server = network.hosts["server"] = Host("server")
    context = contextvars.copy_context()
    context.run(HOST.set, server)
    listening = context.run(network.listen, Server, "server", PORT)
    await listening.start_serving()
    HOST.set(Host("client"))
    link = Pipeline(loop, "client", life=1)
    await loop.create_connection(lambda: link, "server", PORT)
    topics = [MetadataRequest.Topic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    answer = await link.ask(request, VERSION)
    link.hang_up()
    await asyncio.sleep(1)
    return answer


def test_a_request_has_left_with_its_last_byte(loop: VirtualLoop) -> None:
    network = network_of(loop)
    network.buffer_bytes = 7

    answer = loop.run_until_complete(ask(loop, network, []))

    assert answer.response.controller_id == 1
    trips = (answer.left_at - answer.sent_at) * 1000 / LATENCY_MS[0]
    assert trips >= 4, "a buffer of 7 bytes was filled and emptied more than once"
    assert answer.left_at < answer.began_at


@pytest.mark.parametrize("lag_seconds", [0.0, 0.01])
@pytest.mark.parametrize("buffer_bytes", [16_384, 1 << 20])
def test_transfer_time_matches_the_networks_estimate(
    loop: VirtualLoop, buffer_bytes: int, lag_seconds: float
) -> None:
    network = network_of(loop)
    network.buffer_bytes, network.lag_seconds = buffer_bytes, lag_seconds

    answer = loop.run_until_complete(ask(loop, network, ["x" * 10_000] * 500))

    taken = answer.left_at - answer.sent_at
    expected = network.carrying_seconds(5_000_000)
    assert expected / 4 <= taken <= expected


@pytest.mark.parametrize(("left_at", "is_late"), [(1000.0, True), (1000.9, False)])
def test_a_broker_without_the_whole_request_is_not_late(
    loop: VirtualLoop, left_at: float, is_late: bool
) -> None:
    cluster = SimulatedCluster(loop, Random(0), 2)
    cluster.network = network_of(loop)
    promptness = Promptness(cluster)
    machine = cluster.machines[1]
    machine.lives = 1
    log = logs_in_memory().create("ledger", 0, TOPIC_ID, TopicConfig())
    append(log, batch(5))
    log.advance_high_watermark(5)
    promptness.note(machine, Partition(log, surroundings(1, Timers(loop))))
    reports: list[str] = []
    REPORTS[:] = [reports.append]
    answer = Answer(None, "FetchRequest", 1000.0, left_at, began_at=1000.92, previous_at=0.0)

    promptness.judge(answer, ("ledger", 0), (1, 1), 5)

    assert bool(reports) == is_late
