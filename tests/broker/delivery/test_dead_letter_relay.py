"""Warnings of the dead letter relay when the dead letter topic no longer knows its producer."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING

from broker.runtime.timers import Timers
from protocol.errors import ErrorCode
from protocol.records.builder import NewRecord, build_batch
from tests.broker.delivery.replicated import DELAYING, Replica
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    import pytest

FOLLOWER = 2
RETRYING = dataclasses.replace(DELAYING, retry_policy="levels", retry_max_attempts=1)
WARNING = "may arrive twice"


class Retrying(Replica):
    """Leader of a retry topic; its follower fetches on demand."""

    def __init__(self) -> None:
        super().__init__(1, RETRYING)
        self.dead_letters = self
        self.batches: list[bytes] = []
        """Batches sent to the dead letter topic."""
        self._producers = 0

    async def send(self, topic: str, index: int, batch: bytearray) -> ErrorCode:
        """The topic takes the second batch."""
        self.batches.append(bytes(batch))
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if len(self.batches) == 1 else ErrorCode.NONE

    async def replicate(self) -> None:
        """Have its follower fetch everything, and let the relay proceed."""
        self.partition.fetched_by(FOLLOWER, -1, self.log.log_end_offset, 0)
        await Timers(asyncio.get_running_loop()).sleep(100)

    async def _obtain_producer_id(self) -> int:
        self._producers += 1
        return self._producers


async def refused() -> Retrying:
    """Return a leader whose first batch was refused, and that has noted its next producer."""
    leader = Retrying()
    leader.begin_life()
    leader.lead(0, FOLLOWER)
    letter = NewRecord(NOW_MS, None, b"letter", (("retry-attempt", b"1"),))
    leader.append(memoryview(build_batch([letter])))
    while not leader.batches:
        await leader.replicate()
    return leader


def test_a_new_relay_producer_warns_of_duplicates_once_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        leader = await refused()
        assert WARNING not in caplog.text

        while len(leader.batches) < 2:
            await leader.replicate()

        assert caplog.text.count(WARNING) == 1
        assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in caplog.text

    run_in_virtual_time(scenario())


def test_a_deposed_leader_warns_of_no_duplicate_dead_letters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next leader has gone on with its producer, for which it comes too late."""

    async def scenario() -> None:
        leader = await refused()

        leader.resign()
        await Timers(asyncio.get_running_loop()).sleep(1000)

        assert len(leader.batches) == 1
        assert WARNING not in caplog.text

    run_in_virtual_time(scenario())
