"""Links to other brokers over TLS: whom they trust, and that all bytes of an answer come."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from broker.network.broker_link import BrokerLink, LinkLimits
from broker.network.links import LinkError, LinkSecurity
from broker.runtime.clock import SystemClock
from broker.runtime.timers import Timers
from broker.security.tls.broker_tls import BrokerTls
from broker.security.tls.listener_context import ListenerName
from protocol.headers import parse_request_header
from protocol.messages.fetch import FetchRequest, FetchResponse
from tests.broker.security.tls.tls_keys import config_of
from tests.support.broker_parts.response_headers import response_front
from tests.support.certificates import Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from config.broker import BrokerConfig

INTERNAL = ListenerName("INTERNAL", has_sasl=False, is_inter_broker=True)
REQUEST = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
VERSION = 11
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def configured(authority: Authority, directory: Path, hosts: str, **more: Any) -> BrokerConfig:
    issued = authority.issue("broker", directory, hosts=hosts.split(","))
    keys = issued.as_keystore() | authority.as_truststore(directory, "PEM")
    return config_of(keys, **more)


def answer_of(correlation_id: int, size: int) -> bytes:
    partition = FetchResponse.Response.Partition(
        partition_index=0, error_code=0, high_watermark=0, records=memoryview(bytes(size))
    )
    topic = FetchResponse.Response(topic="t", partitions=[partition])
    body = FetchResponse(responses=[topic]).encode(VERSION)
    return response_front(correlation_id, FetchRequest.API_KEY, VERSION, len(body)) + body


class OtherBroker:
    """Broker that answers fetches with records of given sizes, by asyncio's own TLS."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = iter(sizes)
        self.cipher: object = None
        self.certificate: object = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.certificate = writer.get_extra_info("peercert")
        try:
            while size := await reader.readexactly(4):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                header, _ = parse_request_header(frame)
                writer.write(answer_of(header.correlation_id, next(self.sizes)))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def run(
    config: BrokerConfig,
    other: OtherBroker,
    scenario: Callable[[BrokerLink], Awaitable[None]],
    *,
    other_context: ssl.SSLContext | None = None,
    is_tls: bool = True,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        threads = ThreadPoolExecutor(1)
        tls = BrokerTls(config, threads, Timers(loop), SystemClock())
        await tls.open(INTERNAL)
        found = tls.listener("INTERNAL")
        assert found is not None
        context = other_context or found.context.server
        server = await asyncio.start_server(
            other.serve, "127.0.0.1", 0, ssl=context if is_tls else None
        )
        address = server.sockets[0].getsockname()[:2]
        limits = LinkLimits(TIMEOUT_MS, 8 << 20)
        link = BrokerLink(
            "broker 7", lambda: address, "client", limits, LinkSecurity(connector=tls)
        )
        try:
            async with asyncio.timeout(60):
                await scenario(link)
        finally:
            link.close()
            server.close()
            for _ in range(3):
                await asyncio.sleep(0)  # noqa: TID251  (lets the other side see that)
            tls.close()
            threads.shutdown()

    asyncio.run(main())


def test_answers_of_all_sizes_come_whole(authority: Authority, tmp_path: Path) -> None:
    sizes = (0, 1, 16_384, 300_000, 1 << 20, (4 << 20) + 17, 5)

    async def scenario(link: BrokerLink) -> None:
        for size in sizes:
            answer = await link.ask(REQUEST, VERSION)
            assert isinstance(answer, FetchResponse)
            assert len(answer.responses[0].partitions[0].records or b"") == size

    config = configured(authority, tmp_path, "127.0.0.1", ssl_client_auth="required")
    other = OtherBroker(*sizes)
    run(config, other, scenario)
    assert other.certificate, "it has shown its own"


def test_a_broker_with_a_certificate_for_another_host_is_not_asked(
    authority: Authority, tmp_path: Path
) -> None:
    async def refused(link: BrokerLink) -> None:
        with pytest.raises(LinkError, match="broker 7: TLS: the peer's certificate is refused: IP"):
            await link.ask(REQUEST, VERSION)

    async def asked(link: BrokerLink) -> None:
        await link.ask(REQUEST, VERSION)

    run(configured(authority, tmp_path, "elsewhere.example"), OtherBroker(), refused)
    config = configured(
        authority, tmp_path, "elsewhere.example", ssl_endpoint_identification_algorithm=""
    )
    run(config, OtherBroker(1), asked)


def test_a_broker_with_an_untrusted_certificate_is_not_asked(
    authority: Authority, tmp_path: Path
) -> None:
    import ssl

    foreign = Authority("Somebody Else").issue("foreign", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(foreign.chain_file(), foreign.key_file())

    async def refused(link: BrokerLink) -> None:
        with pytest.raises(LinkError, match="the peer's certificate is refused"):
            await link.ask(REQUEST, VERSION)

    config = configured(authority, tmp_path, "127.0.0.1")
    run(config, OtherBroker(), refused, other_context=context)


def test_a_broker_without_tls_is_not_asked(authority: Authority, tmp_path: Path) -> None:
    class Hasty(OtherBroker):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4)
            writer.close()

    async def refused(link: BrokerLink) -> None:
        with pytest.raises(LinkError, match="is TLS on at its listener"):
            await link.ask(REQUEST, VERSION)

    run(configured(authority, tmp_path, "127.0.0.1"), Hasty(), refused, is_tls=False)
