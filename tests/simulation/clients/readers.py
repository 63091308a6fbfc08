"""Consumers of one partition each, which wait for records, read slowly, and hang up in between."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from broker.network.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.records.batch import compute_crc, iterate_headers
from protocol.records.record import iterate_records
from tests.simulation.checks.refusals import report
from tests.simulation.clients.client import RETRY_SECONDS, Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.checks.promptness import Promptness
    from tests.simulation.clients.pipeline import Answer, Pipeline
    from tests.simulation.clients.values import At, Origin, Sent
    from tests.simulation.cluster import SimulatedCluster

VERSION = 11
MAX_WAITS_MS = 200, 5000, 1_000_000
MOST_BYTES = 1 << 20
MAX_BYTES = 1, 5000, 100_000, MOST_BYTES
QUITS = 0.0, 0.0, 0.1, 0.4
"""Probabilities that it closes the connection as a record arrives in the partition it waits for."""


class Reader(Client):
    """Follows one partition from its beginning; all it reads has to stay."""

    def __init__(self, cluster: SimulatedCluster, name: str, at: At, sent: Sent) -> None:
        super().__init__(cluster, name)
        self.at = at
        self.position = 0
        self.seen: dict[int, Origin] = {}
        """Records read, by offset."""
        self._sent = sent
        self._promptness: Promptness = cluster.promptness
        self._max_wait_ms = self.random.choice(MAX_WAITS_MS)
        self._max_bytes = self.random.choice(MAX_BYTES)
        self._quits = self.random.choice(QUITS)
        self._rests = self.random.random() < 0.3
        self._waiting: Pipeline | None = None
        """The connection on which a request is under way."""
        self.patience = self.random.choice((3.0, 30.0, math.inf))
        sent.listeners.append(self._record_under_way)

    async def run(self) -> None:
        """Read on and on, until it is cancelled."""
        while True:
            leader = self.leaders.get(self.at, -1)
            try:
                if leader >= 0:
                    await self._follow(leader, await self.link(leader))
            except LinkError:
                pass
            await self.refresh(self.at[0])
            await asyncio.sleep(self.random.uniform(0, RETRY_SECONDS))

    async def _follow(self, leader: int, link: Pipeline) -> None:
        """Read on one connection, until an answer is an error; raises LinkError."""
        link.on_part = self._answer_under_way
        code = ErrorCode.NONE
        while code is ErrorCode.NONE:
            max_bytes = MOST_BYTES if self.is_done else self._max_bytes
            request = fetch_request(self.at, self.position, self._max_wait_ms, max_bytes)
            request.topics[0].partitions[0].current_leader_epoch = self.leader_epochs[self.at]
            self._waiting = link
            try:
                answer = await self.outcome(link, link.ask(request, VERSION))
            finally:
                self._waiting = None
            self._promptness.judge(answer, self.at, (leader, link.life), self.position + 1)
            code = self._take(answer, leader)
            if self._rests and not self.is_done and self.random.random() < 0.2:
                link.rest(self.random.uniform(0, 0.5))

    def _take(self, answer: Answer, broker_id: int) -> ErrorCode:
        """Look at what was read; returns the partition's error."""
        (told,) = answer.response.responses[0].partitions
        code = ErrorCode(told.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and self.cluster.leads(broker_id, self.at):
            report(f"{self.name}: {self.at[0]}-{self.at[1]} has no offset {self.position} any more")
        for offset, value in records_of(answer.response, self.name):
            if offset < self.position:
                continue  # an answer begins with a whole batch
            if offset != self.position:
                report(f"{self.name}: after {self.position} comes {offset} of {self.at}")
            self.seen[offset] = self._sent.recognise(self.at, value, f"{self.name} at {offset}")
            self.position = offset + 1
        return code

    def _record_under_way(self, at: At) -> None:
        """Hang up at the worst moment: what is waited for is about to come."""
        link = self._waiting
        if link is None or at != self.at or self.is_done:
            return
        if self.random.random() < self._quits:
            link.hang_up(is_reset=self.random.random() < 0.8)

    def _answer_under_way(self) -> None:
        link = self._waiting
        if link is not None and not self.is_done and self.random.random() < self._quits / 4:
            link.hang_up(is_reset=self.random.random() < 0.5)


def fetch_request(at: At, offset: int, max_wait_ms: int, max_bytes: int) -> FetchRequest:
    """A consumer's request for one partition, without a session."""
    partition = FetchRequest.Topic.Partition(
        partition=at[1], fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[FetchRequest.Topic(topic=at[0], partitions=[partition])],
    )


def records_of(response: Any, where: str) -> Iterator[tuple[int, bytes]]:
    """Offsets and values in an answer to such a request; the last batch may be cut off."""
    (told,) = response.responses[0].partitions
    view = memoryview(bytes(told.records or b""))
    for position, header in iterate_headers(view):
        size = header.size_in_bytes
        if compute_crc(view, position, size) != header.crc:
            report(f"{where}: the batch at offset {header.base_offset} is damaged")
            return
        for record in iterate_records(view[position : position + size]):
            assert record.value is not None
            yield record.offset, bytes(record.value)
