"""Fetch on one broker: what is read, how much of it, when it is answered, and each refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from tests.broker.handlers.data_broker import (
    BY_ID,
    TOPIC,
    DataBroker,
    answers,
    fill,
    offsets,
    records,
    run_data_broker,
    wanted,
)

if TYPE_CHECKING:
    from pathlib import Path

BATCH_BYTES = len(records(3))


@pytest.mark.parametrize("version", range(4, 19))
def test_fetch_returns_records_with_log_start_and_high_watermark(
    version: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        topic = broker.metadata.topic_id(TOPIC) if version >= BY_ID else TOPIC

        response = await broker.fetch(wanted(topic, offset=3), version=version)

        (answer,) = answers(response)
        assert offsets(answer) == [3, 4, 5, 6, 7, 8]
        assert (answer.error_code, answer.partition_index) == (ErrorCode.NONE, 0)
        assert (answer.high_watermark, answer.last_stable_offset) == (9, 9)
        assert answer.log_start_offset == (0 if version >= 5 else -1)
        assert answer.aborted_transactions is None
        assert response.session_id == 0

    run_data_broker(tmp_path, scenario)


def test_offset_within_a_batch_gets_the_whole_batch(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        (answer,) = answers(await broker.fetch(wanted(offset=4, max_bytes=BATCH_BYTES)))

        assert offsets(answer) == [3, 4, 5]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("limits", [(0, 1 << 20), (1, 1 << 20), (1 << 20, 0), (1 << 20, 1)])
def test_first_batch_comes_whatever_the_limits(limits: tuple[int, int], tmp_path: Path) -> None:
    partition_max_bytes, max_bytes = limits

    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=2)

        response = await broker.fetch(
            wanted(index=0, offset=9, max_bytes=partition_max_bytes),
            wanted(index=1, max_bytes=partition_max_bytes),
            max_bytes=max_bytes,
        )

        empty, first = answers(response)
        assert offsets(empty) == []
        assert offsets(first) == [0, 1, 2]

    run_data_broker(tmp_path, scenario)


def test_bytes_are_shared_out_in_the_order_of_the_request(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=3)
        partitions = [wanted(index=index) for index in (2, 0, 1)]

        response = await broker.fetch(*partitions, max_bytes=4 * BATCH_BYTES)

        found = answers(response)
        assert [answer.partition_index for answer in found] == [2, 0, 1]
        assert [len(offsets(answer)) for answer in found] == [9, 3, 0]
        assert all(answer.high_watermark == 9 for answer in found)

    run_data_broker(tmp_path, scenario)


def test_fetch_max_bytes_of_the_broker_limits_the_request(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        for _ in range(8):
            await broker.produce({(TOPIC, 0): records(value=bytes(500))})

        (answer,) = answers(await broker.fetch(wanted(), max_bytes=2**31 - 1))

        assert offsets(answer) == [0]

    run_data_broker(tmp_path, scenario, fetch_max_bytes=1024)


@pytest.mark.parametrize("offset", [-1, -2, 2, 10, 2**62])
def test_offset_outside_the_log_is_refused(offset: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker, count=2)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        partition.log.advance_log_start_offset(3)

        for order in ([(0, offset), (1, 0)], [(1, 0), (0, offset)]):
            response = await broker.fetch(
                *(wanted(index=index, offset=at) for index, at in order), max_bytes=1
            )
            refused = next(one for one in answers(response) if one.partition_index == 0)
            assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
            assert (refused.high_watermark, refused.last_stable_offset) == (-1, -1)
            assert refused.log_start_offset == -1
            assert refused.records == b""

    run_data_broker(tmp_path, scenario)


def test_offset_between_high_watermark_and_log_end_is_empty(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        broker.lead(partition, partition.leader_epoch + 1, isr=(0, 1))
        await broker.produce({(TOPIC, 0): records(3)}, acks=1)

        for offset in (9, 11, 12):
            (answer,) = answers(await broker.fetch(wanted(offset=offset)))
            assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
            assert answer.high_watermark == 9
        (answer,) = answers(await broker.fetch(wanted(offset=6)))
        assert offsets(answer) == [6, 7, 8], "nothing past the high watermark"

    run_data_broker(tmp_path, scenario)


def test_unknown_topics_partitions_and_ids_each_have_their_code(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        topic_id = broker.metadata.topic_id(TOPIC)

        by_name = answers(await broker.fetch(wanted("ghost"), wanted(index=7), wanted()))
        by_id = answers(
            await broker.fetch(
                *(wanted(UUID(int=77)), wanted(UUID(int=0)), wanted(topic_id, index=7)),
                wanted(topic_id),
                version=BY_ID,
            )
        )

        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [one.error_code for one in by_name] == [missing, missing, ErrorCode.NONE]
        assert [one.error_code for one in by_id] == [
            *(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID),
            *(missing, ErrorCode.NONE),
        ]

    run_data_broker(tmp_path, scenario)


def test_partition_listed_twice_is_answered_once(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        found = answers(await broker.fetch(wanted(offset=0), wanted(offset=6)))

        assert len(found) == 1

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("epoch_difference", "code"),
    [
        (-1, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.NONE),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_readers_with_another_leader_epoch_are_refused(
    epoch_difference: int, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        broker.lead(partition, 5)

        response = await broker.fetch(wanted(current_leader_epoch=5 + epoch_difference))

        assert answers(response)[0].error_code == code

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (9, 0, (-1, -1)),
        (10, 0, (0, 9)),
        (12, 5, (-1, -1)),
        (12, 3, (0, 9)),
        (9, 3, (0, 9)),
    ],
)
def test_reader_with_a_diverging_epoch_gets_its_end_offset(
    offset: int, last_epoch: int, diverging: tuple[int, int], tmp_path: Path
) -> None:
    """Given epoch 0 up to offset 9 and epoch 5 up to 12."""

    async def scenario(broker: DataBroker) -> None:
        await fill(broker)
        partition = broker.replicas.partition(TOPIC, 0)
        assert partition is not None
        broker.lead(partition, 5)
        await broker.produce({(TOPIC, 0): records(3)})

        (answer,) = answers(
            await broker.fetch(wanted(offset=offset, last_fetched_epoch=last_epoch))
        )

        assert answer.error_code == ErrorCode.NONE
        found = answer.diverging_epoch
        assert (found.epoch, found.end_offset) == diverging
        if diverging != (-1, -1):
            assert answer.records == b""

    run_data_broker(tmp_path, scenario)


def test_fetch_with_an_unknown_last_fetched_epoch_is_out_of_range(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        (answer,) = answers(await broker.fetch(wanted(offset=3, last_fetched_epoch=9)))

        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [4, 9, 10])
def test_zstd_batches_are_served_to_clients_of_every_fetch_version(
    version: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        for codec in (Codec.LZ4, Codec.ZSTD, Codec.NONE):
            await broker.produce({(TOPIC, 0): records(3, codec=codec)})

        for offset in (0, 3):
            (answer,) = answers(await broker.fetch(wanted(offset=offset), version=version))
            assert offsets(answer) == list(range(offset, 9))

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("offset", [0, 3, 99])
@pytest.mark.parametrize("version", [4, 9, 10])
def test_a_topic_that_is_kept_in_zstd_needs_version_10(
    version: int, offset: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(compression_type="zstd")
        await broker.produce({(TOPIC, 0): records(3, codec=Codec.ZSTD)})

        (answer,) = answers(await broker.fetch(wanted(offset=offset), version=version))

        if version < 10:
            assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            assert answer.records == b""
        elif offset <= 3:
            assert offsets(answer) == list(range(offset, 3))
        else:
            assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run_data_broker(tmp_path, scenario)


def test_read_committed_gets_a_list_of_aborted_transactions(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await fill(broker)

        (answer,) = answers(await broker.fetch(wanted(), isolation_level=1))

        assert answer.aborted_transactions == []
        assert len(offsets(answer)) == 9

    run_data_broker(tmp_path, scenario)
