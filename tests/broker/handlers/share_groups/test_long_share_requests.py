"""Requests of share groups that are long: what they hold, and who is served meanwhile."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import pytest

from broker.requests.dispatch import Dispatcher
from broker.requests.long_requests import ELEMENTS_AT_ONCE, LONG_BYTES
from protocol.errors import ErrorCode
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from tests.broker.connections import connected
from tests.broker.handlers.share_groups.share_broker import (
    ACCEPT,
    GROUP,
    LOCK_MS,
    ShareBroker,
    acquired,
    later,
    run_share_broker,
)
from tests.broker.requests.test_long_requests import answer, frame
from tests.controller.harness import turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

    from tests.broker.connections import Wire

MANY = 6 * ELEMENTS_AT_ONCE
HUGE = 100_000
"""Partitions that would hold the loop up for longer than a test may."""
PARTITIONS = 4
SINGLY = 150
"""Acknowledgements of one record each: more than are decided on at once."""


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Garbage cycles stay, as they do in a broker that has nothing to do."""
    gc.disable()
    yield
    gc.enable()


def acknowledge(topic_id: UUID, count: int) -> ShareAcknowledgeRequest:
    """Acknowledge records that no member holds, in partitions most of which do not exist."""
    kind = ShareAcknowledgeRequest.Topic.Partition
    batch = kind.AcknowledgementBatch(first_offset=0, last_offset=9, acknowledge_types=[ACCEPT])
    partitions = [
        kind(partition_index=index, acknowledgement_batches=[batch]) for index in range(count)
    ]
    topic = ShareAcknowledgeRequest.Topic(topic_id=topic_id, partitions=partitions)
    return ShareAcknowledgeRequest(
        group_id=GROUP, member_id="one", share_session_epoch=1, topics=[topic]
    )


def all_of(topic_id: UUID, count: int) -> list[ShareFetchRequest.Topic]:
    kind = ShareFetchRequest.Topic.Partition
    named = [kind(partition_index=index, acknowledgement_batches=[]) for index in range(count)]
    return [ShareFetchRequest.Topic(topic_id=topic_id, partitions=named)]


async def sent(wire: Wire, request: Any) -> Any:
    wire.send(frame(request, 2))
    return await answer(wire, request, 2)


@pytest.mark.usefixtures("_no_collector")
def test_refused_acknowledgements_are_freed_with_their_answer(tmp_path: Path) -> None:
    """Else no long request would be read until the next garbage collection."""

    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        dispatcher = Dispatcher(broker.services)
        request = acknowledge(broker.metadata.topic_id("orders"), MANY)
        assert len(frame(request, 2)) > LONG_BYTES
        async with connected(dispatcher) as wire:
            await sent(wire, broker.fetch_request())

            response = await sent(wire, request)

            codes = [one.error_code for one in response.responses[0].partitions]
            assert codes == [ErrorCode.INVALID_REQUEST] + [3] * (MANY - 1)
            await turns()
            assert dispatcher.elements.used == 0

    run_share_broker(tmp_path, scenario, queued_max_request_elements=MANY)


@pytest.mark.usefixtures("_no_collector")
def test_partitions_that_cannot_be_read_are_freed_with_their_answer(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=1)
        dispatcher = Dispatcher(broker.services)
        topics = all_of(broker.metadata.topic_id("orders"), MANY)
        async with connected(dispatcher) as wire:
            response = await sent(wire, broker.fetch_request(topics=topics))

            assert len(response.responses[0].partitions) > 1
            await turns()
            assert dispatcher.elements.used == 0

    run_share_broker(tmp_path, scenario, queued_max_request_elements=MANY)


def decoded(broker: ShareBroker, topic_id: UUID) -> ShareFetchRequest:
    request = broker.fetch_request(topics=all_of(topic_id, HUGE))
    return ShareFetchRequest.decode(2, memoryview(bytearray(request.encode(2))))


def test_others_are_served_while_a_session_of_many_partitions_opens_and_ends(
    tmp_path: Path,
) -> None:
    """The test fails if a step takes too long (`tests.support.loop_watch`)."""
    request: Any = None

    async def scenario(broker: ShareBroker) -> None:
        nonlocal request
        await broker.fill(batches=1)
        topic_id = broker.metadata.topic_id("orders")
        if request is None:
            # Of a connection, what is so long is decoded in steps.
            request = await asyncio.to_thread(decoded, broker, topic_id)
        opened: Any = broker.handle(request, 2)
        await later(opened)
        (session,) = broker.services.share_partitions.sessions._sessions.values()
        assert len(session.partitions) == HUGE

        broker.services.share_partitions.end_session(session)
        while session.partitions:
            await turns(1)

        assert len(broker.services.share_partitions) == 0

    run_share_broker(tmp_path, scenario)


def singly(kind: int) -> list[tuple[int, ...]]:
    return [(offset, offset, kind) for offset in range(SINGLY)]


def test_records_whose_lock_expired_during_a_refused_acknowledgement_come_again(
    tmp_path: Path,
) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=SINGLY, count=1)
        assert len(acquired(await broker.fetched())) > 0
        two, three = (
            broker.share_fetch(member_id=member, max_wait_ms=10 * LOCK_MS)
            for member in ("two", "three")
        )
        refused = broker.share_fetch(*singly(ACCEPT), share_session_epoch=1)
        assert not refused.is_complete, "it is decided on in steps"

        broker.time.pass_(LOCK_MS + 1)  # for those that were not decided on yet
        refused_answer = await later(refused)
        broker.time.pass_(0)

        assert refused_answer.acknowledge_error_code == ErrorCode.INVALID_RECORD_STATE
        last = acquired(await asyncio.wait_for(later(two), 10))
        first = acquired(await asyncio.wait_for(later(three), 10))
        assert (first[0][0], last[-1][1]) == (0, SINGLY - 1)
        assert first[-1][1] == last[0][0] - 1

    run_share_broker(tmp_path, scenario)


def test_lock_that_was_passed_by_during_a_refused_acknowledgement_expires(tmp_path: Path) -> None:
    async def scenario(broker: ShareBroker) -> None:
        await broker.fill(batches=SINGLY + 1, count=1)
        await broker.fetched(member_id="zero", max_records=1)
        broker.time.pass_(1000)
        await broker.fetched(max_records=SINGLY + 1)
        waiting = broker.share_fetch(member_id="two", max_wait_ms=10 * LOCK_MS)
        mine = [(offset + 1, offset + 1, ACCEPT) for offset in range(SINGLY)]
        refused = broker.share_fetch(*mine, (500, 500, ACCEPT), share_session_epoch=1)
        assert not refused.is_complete, "it is decided on in steps"

        broker.time.pass_(LOCK_MS - 500)  # the lock of the first record expires
        await later(refused)
        first = acquired(await asyncio.wait_for(later(waiting), 10))
        next_wait = broker.share_fetch(
            member_id="two", max_wait_ms=10 * LOCK_MS, share_session_epoch=1
        )
        broker.time.pass_(1000)

        assert first == [(0, 0, 2)]
        again = acquired(await asyncio.wait_for(later(next_wait), 10))
        assert again[0][0] == 1
        assert again[-1][1] == SINGLY

    run_share_broker(tmp_path, scenario)
