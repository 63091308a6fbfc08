"""Asking another broker over a socket: answers, silence, nonsense, and coming back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.network.broker_link import BrokerLink, LinkLimits
from broker.network.links import LinkError, LinkSecurity
from protocol.headers import parse_request_header
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.produce import ProduceRequest
from tests.support.broker_parts.response_headers import response_front

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from broker.network.links import Ask
    from protocol.headers import RequestHeader

Answer = bytes | None
"""Response frame; None closes the connection."""

LIMIT = 1 << 20


class OtherBroker:
    """Reads frames and answers each as the test says."""

    def __init__(self, answer: Callable[[RequestHeader, bytes], Awaitable[Answer]]) -> None:
        self._answer = answer
        self.client_ids: list[str | None] = []
        self.connections = 0
        self.address: tuple[str, int] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while size := await reader.readexactly(4):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                header, position = parse_request_header(frame)
                self.client_ids.append(header.client_id)
                answer = await self._answer(header, frame[position:])
                if answer is None:
                    break
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def run(
    answer: Callable[[RequestHeader, bytes], Awaitable[Answer]],
    scenario: Callable[[BrokerLink, OtherBroker], Coroutine[None, None, None]],
    timeout_ms: int = 5000,
) -> None:
    async def main() -> None:
        other = OtherBroker(answer)
        server = await asyncio.start_server(other.serve, "127.0.0.1", 0)
        other.address = server.sockets[0].getsockname()[:2]
        link = BrokerLink(
            "broker 7", lambda: other.address, "broker-1-fetcher-0", LinkLimits(timeout_ms, LIMIT)
        )
        try:
            await scenario(link, other)
        finally:
            link.close()
            server.close()
            await asyncio.sleep(0)  # noqa: TID251  (lets the other side see that)

    asyncio.run(main())


async def versions(header: RequestHeader, body: bytes) -> bytes:
    """Answer ApiVersions."""
    ApiVersionsRequest.decode(header.api_version, body)
    encoded = ApiVersionsResponse(error_code=35, api_keys=[]).encode(header.api_version)
    front = response_front(header.correlation_id, header.api_key, header.api_version, len(encoded))
    return front + encoded


REQUEST = ApiVersionsRequest(client_software_name="x", client_software_version="1")


@pytest.mark.parametrize("version", [0, 3])
def test_each_request_gets_its_own_answer(version: int) -> None:
    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        for _ in range(3):
            response = await link.ask(REQUEST, version)
            assert isinstance(response, ApiVersionsResponse)
            assert response.error_code == 35
        both = await asyncio.gather(link.ask(REQUEST, version), link.ask(REQUEST, version))
        assert len(both) == 2
        assert other.connections == 1
        assert set(other.client_ids) == {"broker-1-fetcher-0"}

    run(versions, scenario)


def test_a_large_answer_in_many_pieces_is_one_buffer() -> None:
    records = bytes(range(256)) * 2000
    partition = FetchResponse.Response.Partition(
        partition_index=0, error_code=0, high_watermark=0, records=memoryview(records)
    )

    async def answer(header: RequestHeader, _: bytes) -> bytes:
        response = FetchResponse(responses=[FetchResponse.Response(partitions=[partition])])
        body = response.encode(header.api_version)
        front = response_front(header.correlation_id, header.api_key, header.api_version, len(body))
        return front + body

    async def scenario(link: BrokerLink, _: OtherBroker) -> None:
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[])
        response = await link.ask(request, 17)
        assert isinstance(response, FetchResponse)
        received = response.responses[0].partitions[0].records
        assert isinstance(received, memoryview)
        assert received == records

    run(answer, scenario)


def test_answers_of_all_sizes_come_one_after_the_other_on_one_connection() -> None:
    sizes = iter([10, 200_000, 300_000, 1000, 131_000, 5])

    async def answer(header: RequestHeader, _: bytes) -> bytes:
        partition = FetchResponse.Response.Partition(
            partition_index=0,
            error_code=0,
            high_watermark=0,
            records=memoryview(bytes([7]) * next(sizes)),
        )
        response = FetchResponse(responses=[FetchResponse.Response(partitions=[partition])])
        body = response.encode(header.api_version)
        front = response_front(header.correlation_id, header.api_key, header.api_version, len(body))
        return front + body

    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        for size in (10, 200_000, 300_000, 1000, 131_000, 5):
            response = await link.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 17)
            assert isinstance(response, FetchResponse)
            assert response.responses[0].partitions[0].records == bytes([7]) * size
        assert other.connections == 1

    run(answer, scenario)


def test_broker_that_is_not_known_cannot_be_asked() -> None:
    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        other.address = None
        with pytest.raises(LinkError, match="broker 7 is not known"):
            await link.ask(REQUEST, 0)

    run(versions, scenario)


def test_a_broker_that_hangs_up_is_reconnected_on_the_next_request() -> None:
    answers = iter([None, b"here"])

    async def answer(header: RequestHeader, body: bytes) -> Answer:
        return await versions(header, body) if next(answers) else None

    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        with pytest.raises(LinkError, match="connection is lost"):
            await link.ask(REQUEST, 0)
        await link.ask(REQUEST, 0)
        assert other.connections == 2

    run(answer, scenario)


def test_broker_that_is_silent_is_given_up() -> None:
    async def answer(_: RequestHeader, __: bytes) -> Answer:
        await asyncio.Event().wait()
        return None

    async def scenario(link: BrokerLink, _: OtherBroker) -> None:
        with pytest.raises(LinkError, match=r"has not answered ApiVersionsRequest for 0\.05 s"):
            await link.ask(REQUEST, 0)

    run(answer, scenario, timeout_ms=50)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"\x00\x00\x00\x06\x7f\x00\x00\x00\x00\x00", "another request"),
        (b"\xff\xff\xff\xff", "cannot have -1 bytes"),
        (b"\x7f\xff\xff\xff", "cannot have 2147483647 bytes"),
        (b"\x00\x00\x00\x05\x00\x00\x00\x01\x00", "broker 7"),
    ],
)
def test_a_malformed_answer_fails_the_request_and_closes_the_connection(
    reply: bytes, reason: str
) -> None:
    async def answer(_: RequestHeader, __: bytes) -> Answer:
        return reply

    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        for _ in range(2):
            with pytest.raises(LinkError, match=reason):
                await link.ask(REQUEST, 0)
            link._correlation_id = 0
        assert other.connections == 2

    run(answer, scenario)


def test_closing_a_link_fails_its_waiting_requests() -> None:
    asked = asyncio.Event()

    async def answer(_: RequestHeader, __: bytes) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        return None

    async def scenario(link: BrokerLink, _: OtherBroker) -> None:
        waiting = asyncio.get_running_loop().create_task(link.ask(REQUEST, 0))
        await asked.wait()
        link.close()
        with pytest.raises(LinkError):
            await waiting

    run(answer, scenario)


def test_broker_that_does_not_listen_cannot_be_asked() -> None:
    async def scenario(link: BrokerLink, other: OtherBroker) -> None:
        other.address = ("127.0.0.1", 1)
        with pytest.raises(LinkError, match="broker 7"):
            await link.ask(REQUEST, 0)

    run(versions, scenario)


def test_a_broker_that_hangs_up_before_it_has_read_the_request_is_a_link_error() -> None:
    """The connection then ends with the last byte of the request, not with the other's end."""
    data = ProduceRequest.TopicData.PartitionData(index=0, records=memoryview(bytes(8 << 20)))
    topic = ProduceRequest.TopicData(name="large", partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=0, topic_data=[topic])

    async def main() -> None:
        hung_up, served = asyncio.Event(), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write_eof()
            await hung_up.wait()
            await reader.read()
            writer.close()
            await writer.wait_closed()
            served.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        link = BrokerLink("broker 7", lambda: address, "client", LinkLimits(60_000, LIMIT))
        asked = asyncio.get_running_loop().create_task(link.ask(request, 9))
        while link._wire is None or not link._wire._transport.is_closing():
            await asyncio.sleep(0)  # noqa: TID251
        hung_up.set()
        with pytest.raises(LinkError, match="the connection is lost"):
            await asked
        await served.wait()
        server.close()

    asyncio.run(main())


class Counted:
    """Counts how often a link logs in, and says when it is to do so again."""

    def __init__(self, after_seconds: float | None) -> None:
        self.times = 0
        self.after_seconds = after_seconds

    async def log_in(self, ask: Ask) -> float | None:
        self.times += 1
        await ask(REQUEST, 3)
        return self.after_seconds


@pytest.mark.parametrize(("after_seconds", "times"), [(None, 1), (3600, 1), (0, 3)])
def test_a_link_authenticates_first_and_when_its_session_expires(
    after_seconds: float | None, times: int
) -> None:
    async def main() -> None:
        other, security = OtherBroker(versions), Counted(after_seconds)
        server = await asyncio.start_server(other.serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        limits = LinkLimits(60_000, LIMIT)
        link = BrokerLink("broker 7", lambda: address, "client", limits, LinkSecurity(security))
        for _ in range(3):
            await link.ask(REQUEST, 3)
        link.close()
        assert (security.times, other.connections) == (times, 1)
        await link.ask(REQUEST, 3)
        assert security.times == times + 1
        link.close()
        server.close()
        await asyncio.sleep(0)  # noqa: TID251  (lets the other side see that)

    asyncio.run(main())


def test_a_link_that_is_refused_is_closed() -> None:
    class Refused(Counted):
        async def log_in(self, ask: Ask) -> float | None:
            await super().log_in(ask)
            raise LinkError("who are you?")

    async def main() -> None:
        other, security = OtherBroker(versions), Refused(None)
        server = await asyncio.start_server(other.serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        limits = LinkLimits(60_000, LIMIT)
        link = BrokerLink("broker 7", lambda: address, "client", limits, LinkSecurity(security))
        for _ in range(2):
            with pytest.raises(LinkError, match="who are you"):
                await link.ask(REQUEST, 3)
        assert (security.times, other.connections) == (2, 2)
        server.close()
        await asyncio.sleep(0)  # noqa: TID251  (lets the other side see that)

    asyncio.run(main())
