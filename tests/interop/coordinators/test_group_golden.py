"""Golden scripts of group requests over sockets; with AGAINST=apache they run against Apache."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.topics import CreateTopicsRequest
from tests.broker.coordinators.golden.golden_script import Script
from tests.support import wire
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from protocol.schema import Request
    from tests.interop.conftest import NewBroker

SCRIPTS = sorted(Path(__file__).parents[2].glob("broker/coordinators/golden/groups/*.txt"))
GROUPS = ("", "g", "r", "s", "p", "none", "o0", "o1", "o2", "o3")
CLIENT_ID = "a-client"
PARKING_SECONDS = 0.3
START_SECONDS = 120


class Connected:
    """A broker behind sockets as the peer of a script: one connection, and one for each label."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections: dict[str, RawConnection] = {"": RawConnection.open(port)}
        self._sent: dict[str, tuple[type[Request], int]] = {}

    async def ask(self, request: Request, version: int) -> Any:
        await self.send("", request, version)
        return await self.wait("")

    async def send(self, label: str, request: Request, version: int) -> None:
        cls = type(request)
        connection = self._connections.get(label)
        if connection is None:
            connection = self._connections[label] = RawConnection.open(self._port)
        front = b"".join(
            number.to_bytes(size, "big")
            for number, size in ((int(cls.API_KEY), 2), (version, 2), (1, 4), (len(CLIENT_ID), 2))
        )
        tags = b"\0" if version in cls.FLEXIBLE else b""
        body = front + CLIENT_ID.encode() + tags + request.encode(version)
        connection.send(len(body).to_bytes(4, "big") + body)
        self._sent[label] = (cls, version)
        if label:
            time.sleep(PARKING_SECONDS)  # noqa: ASYNC251 - nothing else runs on this loop
            # What answers on another connection has taken in, by then, what came before.
            assert wire.serves_api_versions(self._port, START_SECONDS)

    async def wait(self, label: str) -> Any:
        cls, version = self._sent.pop(label)
        answer = self._connections[label].receive()
        return cls.RESPONSE.decode(version, answer, 5 if version in cls.RESPONSE.FLEXIBLE else 4)

    async def prepare(self) -> dict[str, Any]:
        """Create the topic, and coordinators for all groups; return the topic's id by its name."""
        topic = CreateTopicsRequest.Topic(
            name="flights", num_partitions=3, replication_factor=1, assignments=[], configs=[]
        )
        await self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        deadline = time.monotonic() + START_SECONDS
        for group in GROUPS:
            while not await self._is_coordinated(group):
                assert time.monotonic() < deadline, f"no coordinator for {group!r}"
                time.sleep(0.1)  # noqa: ASYNC251 - nothing else runs on this loop
        wanted = MetadataRequest.Topic(name="flights")
        metadata = await self.ask(
            MetadataRequest(topics=[wanted], allow_auto_topic_creation=False), 12
        )
        return {"flights": metadata.topics[0].topic_id}

    async def _is_coordinated(self, group: str) -> bool:
        found = await self.ask(FindCoordinatorRequest(key=group), 3)
        read = await self.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
        return bool(found.error_code == 0 and read.error_code == 0)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.socket.close()


def test_answers_to_golden_scripts(new_broker: NewBroker, tmp_path: Path) -> None:
    process = new_broker(tmp_path, {})
    process.start()
    peer = Connected(process.port)
    try:
        asyncio.run(replay_all(peer))
    finally:
        peer.close()
        process.stop()


async def replay_all(peer: Connected) -> None:
    topic_ids = await peer.prepare()
    differences = {}
    for path in SCRIPTS:
        text = path.read_text()
        replayed = await Script(peer, topic_ids).replay(text)
        if replayed != text:
            differences[path.name] = replayed
    if differences:
        pytest.fail("\n".join(f"{name}:\n{text}" for name, text in differences.items()))
