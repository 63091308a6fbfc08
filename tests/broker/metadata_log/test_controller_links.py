"""Requests to controllers are sent in the newest version that both ends have."""

from __future__ import annotations

import asyncio
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.metadata_log.controller_links import (
    SOFTWARE_NAME,
    SOFTWARE_VERSION,
    ControllerLinks,
)
from broker.network.broker_link import LinkLimits
from broker.network.links import LinkError
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import parse_request_header
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchRequest, FetchResponse
from tests.support.broker_parts.response_headers import response_front

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from protocol.schema import Response

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[])


class Controller:
    """Answers ApiVersions, with one range for Fetch, and Fetch."""

    def __init__(self, *versions: tuple[int, int]) -> None:
        """`versions` are those of Fetch on each connection, one after the other."""
        self._versions = list(versions)
        self.asked: list[tuple[int, int]] = []
        self.hangs_up = False
        self.serving: list[asyncio.Task[None]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self.serving.append(current)
        lowest, highest = self._versions.pop(0)
        with suppress(asyncio.IncompleteReadError):
            while not self.hangs_up and (size := await reader.readexactly(4)):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                header, position = parse_request_header(frame)
                self.asked.append((header.api_key, header.api_version))
                response: Response = FetchResponse(responses=[])
                if header.api_key == ApiKey.API_VERSIONS:
                    fetch = ApiVersionsResponse.ApiKey(
                        api_key=1, min_version=lowest, max_version=highest
                    )
                    request = ApiVersionsRequest.decode(header.api_version, frame[position:])
                    response = ApiVersionsResponse(
                        error_code=int(refusal_of(request)), api_keys=[fetch]
                    )
                body = response.encode(header.api_version)
                front = response_front(
                    header.correlation_id, header.api_key, header.api_version, len(body)
                )
                writer.write(front + body)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def refusal_of(request: ApiVersionsRequest) -> ErrorCode:
    """The error of a request whose client has no proper name and version (KIP-511)."""
    names = (request.client_software_name, request.client_software_version)
    return ErrorCode.NONE if all(map(SOFTWARE.fullmatch, names)) else ErrorCode.INVALID_REQUEST


def run(
    controller: Controller,
    scenario: Callable[[ControllerLinks, tuple[str, int]], Coroutine[None, None, None]],
) -> None:
    async def main() -> None:
        server = await asyncio.start_server(controller.serve, "127.0.0.1", 0)
        links = ControllerLinks("broker-5", LinkLimits(5000, 1 << 20))
        try:
            await scenario(links, server.sockets[0].getsockname()[:2])
        finally:
            links.close()
            server.close()
            await asyncio.gather(*controller.serving)

    asyncio.run(main())


@pytest.mark.parametrize(("highest", "sent"), [(17, 17), (18, 18), (19, 18)])
def test_fetch_is_sent_in_the_newest_version_that_both_have(highest: int, sent: int) -> None:
    controller = Controller((4, highest))

    async def scenario(links: ControllerLinks, address: tuple[str, int]) -> None:
        for _ in range(2):
            assert isinstance(await links.ask(address, FETCH), FetchResponse)

    run(controller, scenario)
    assert controller.asked == [(18, 3), (1, sent), (1, sent)]


@pytest.mark.parametrize("versions", [(4, 12), (19, 20), (0, -1)])
def test_controller_without_a_version_in_common_is_not_asked(versions: tuple[int, int]) -> None:
    controller = Controller(versions)

    async def scenario(links: ControllerLinks, address: tuple[str, int]) -> None:
        with pytest.raises(LinkError, match="FetchRequest is served in versions"):
            await links.ask(address, FETCH)

    run(controller, scenario)
    assert controller.asked == [(18, 3)]


def test_versions_are_asked_for_again_after_the_connection_broke() -> None:
    controller = Controller((4, 18), (4, 17))

    async def scenario(links: ControllerLinks, address: tuple[str, int]) -> None:
        await links.ask(address, FETCH)
        controller.hangs_up = True
        await links.ask(address, FETCH)
        with pytest.raises(LinkError):
            await links.ask(address, FETCH)
        controller.hangs_up = False
        await links.ask(address, FETCH)

    run(controller, scenario)
    assert controller.asked == [(18, 3), (1, 18), (1, 18), (18, 3), (1, 17)]


def test_name_and_version_sent_to_controllers_are_the_projects() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    assert (project["name"], project["version"]) == (SOFTWARE_NAME, SOFTWARE_VERSION)
