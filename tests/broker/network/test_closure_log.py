"""Reasons for closed connections are logged, within bounds that protect the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.network.closure_log import ClosureLog
from tests.broker.connections import ScriptedDispatcher, connected

if TYPE_CHECKING:
    import pytest

MALFORMED = b"\xff\xff\xff\xff"


class Clock:
    """Seconds that a test lets pass."""

    def __init__(self) -> None:
        self.seconds = 100

    def now_ms(self) -> int:
        raise AssertionError("a wall clock may be set back")

    def monotonic_ms(self) -> int:
        return self.seconds * 1000


def test_a_closed_connection_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with connected(ScriptedDispatcher(lambda _: [b"?"])) as wire:
            wire.writer.write(MALFORMED)
            assert await wire.reader.read() == b""

    asyncio.run(scenario())
    assert any("connection closed: frame of -1 bytes" in line for line in caplog.messages)


def test_a_thousand_failed_log_ins_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = ClosureLog(clock, 3)
    for port in range(1000):
        log.tell(f"10.0.0.1:{port}", "failed authentication")
    assert len(caplog.messages) == 4
    assert caplog.messages[0] == "10.0.0.1:0: connection closed: failed authentication"
    assert "connection.log.max.lines.per.second" in caplog.messages[3]
    clock.seconds += 1
    log.tell("10.0.0.2:1", "failed authentication")
    assert caplog.messages[4] == "connections closed: 997 lines left out"
    assert caplog.messages[5].startswith("10.0.0.2:1: ")
