"""Fetch and ListOffsets for read_committed consumers: how far they read, and what they skip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    answers,
    fetch_request,
    offsets,
    records,
    run_data_broker,
    wanted,
)
from tests.broker.handlers.records.test_transactional_produce import batch, end, produce
from tests.controller.harness import turns

if TYPE_CHECKING:
    from pathlib import Path

READ_COMMITTED = 1
LONG_MS = 60_000


def waiting_fetch(broker: DataBroker, offset: int, **fields: Any) -> Any:
    request = fetch_request(
        wanted(offset=offset),
        isolation_level=READ_COMMITTED,
        max_wait_ms=LONG_MS,
        **fields,
    )
    return broker.call(request, 12)


def test_a_marker_completes_fetches_waiting_for_the_last_stable_offset(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        await produce(broker, batch())
        waiting = waiting_fetch(broker, 0)
        await produce(broker, batch(1))
        await turns()
        assert not waiting.is_complete

        end(broker, epoch=1, version=2)
        await turns()

        (answer,) = answers(waiting.value)
        assert offsets(answer) == [0, 1, 2]
        assert (answer.last_stable_offset, answer.high_watermark) == (3, 3)

    run_data_broker(tmp_path, scenario)


def test_min_bytes_counts_only_bytes_below_the_last_stable_offset(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        await broker.produce({(TOPIC, 0): records()})
        await produce(broker, batch())
        for sequence in range(1, 9):
            await produce(broker, batch(sequence))
        waiting = waiting_fetch(broker, 0, min_bytes=300)
        await turns()
        assert not waiting.is_complete

        end(broker, epoch=1, version=2)
        await turns()

        assert waiting.is_complete

    run_data_broker(tmp_path, scenario)


def test_aborted_transactions_cover_only_the_returned_records(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        for epoch in range(3):
            await produce(broker, batch(epoch=epoch))
            end(broker, epoch=epoch + 1, version=2, commits=epoch == 1)

        whole = await broker.fetch(wanted(), isolation_level=READ_COMMITTED)
        part = await broker.fetch(wanted(max_bytes=1), isolation_level=READ_COMMITTED)
        later = await broker.fetch(wanted(offset=2), isolation_level=READ_COMMITTED)
        plain = await broker.fetch(wanted())

        firsts = [
            [each.first_offset for each in answers(response)[0].aborted_transactions]
            for response in (whole, part, later)
        ]
        assert firsts == [[0, 4], [0], [4]]
        assert answers(plain)[0].aborted_transactions is None

    run_data_broker(tmp_path, scenario)


def test_session_returns_records_when_only_the_last_stable_offset_moved(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        await produce(broker, batch())
        first = await broker.fetch(
            wanted(), isolation_level=READ_COMMITTED, session_id=0, session_epoch=0
        )
        assert offsets(answers(first)[0]) == []
        session: dict[str, Any] = {
            "isolation_level": READ_COMMITTED,
            "session_id": first.session_id,
        }
        second = await broker.fetch(session_epoch=1, **session)
        assert answers(second) == []

        end(broker, epoch=1, version=2)
        third = await broker.fetch(session_epoch=2, **session)

        assert offsets(answers(third)[0]) == [0, 1]

    run_data_broker(tmp_path, scenario)


def test_errors_carry_no_offsets(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        response = await broker.fetch(wanted(offset=5), isolation_level=READ_COMMITTED, version=4)

        (answer,) = answers(response)
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (answer.high_watermark, answer.last_stable_offset) == (-1, -1)

    run_data_broker(tmp_path, scenario)
