"""Produce with sequence numbers: repeats, gaps, wraps and epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from storage.producer.producer import LAST_SEQUENCE
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    records,
    run_data_broker,
)

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID


def sequenced(
    sequence: int, count: int = 1, *, producer_id: int = 9, epoch: int = 0
) -> dict[tuple[str | UUID, int], bytes | None]:
    """A batch of an idempotent producer, for the first partition."""
    batch = records(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return {(TOPIC, 0): batch}


def test_repeated_batch_is_answered_with_its_first_offset(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        for sequence in range(6):
            await broker.produce(sequenced(sequence))

        for sequence in range(6):  # the first is remembered no more, and found in the log
            (again,) = await broker.produce(sequenced(sequence))
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, sequence)

        assert partition.log.log_end_offset == 6

    run_data_broker(tmp_path, scenario)


def test_gap_in_sequences_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        await broker.produce(sequenced(0, 3))

        codes = [
            (await broker.produce(sequenced(sequence, count)))[0].error_code
            for sequence, count in [(4, 1), (1, 2), (0, 4), (3, 1)]
        ]

        wrong = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert codes == [wrong, wrong, wrong, ErrorCode.NONE]

    run_data_broker(tmp_path, scenario)


def test_sequence_wraps_to_zero_between_batches_and_within_one(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        sent = [
            *(sequenced(LAST_SEQUENCE), sequenced(0)),
            *(sequenced(LAST_SEQUENCE - 1, 4, producer_id=8), sequenced(2, producer_id=8)),
        ]
        codes = [(await broker.produce(batch))[0].error_code for batch in sent]

        assert codes == [ErrorCode.NONE] * 4

    run_data_broker(tmp_path, scenario)


def test_unknown_producer_may_begin_anywhere_and_a_new_epoch_at_zero(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        outcomes = [
            (await broker.produce(sequenced(sequence, epoch=epoch)))[0].error_code
            for sequence, epoch in [(77, 3), (1, 4), (0, 4), (78, 3)]
        ]

        assert outcomes == [
            ErrorCode.NONE,
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.NONE,
            ErrorCode.INVALID_PRODUCER_EPOCH,
        ]

    run_data_broker(tmp_path, scenario)
