"""Produce to topics with a `compression.type` of their own: order, duplicates, errors, answers."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import TYPE_CHECKING

import pytest

from broker.handlers.records.appends import Appends
from broker.runtime.deferred import Deferred, HangUp
from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest
from protocol.records.batch import iterate_headers
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.controller.harness import NOW_MS, turns
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path

    from broker.partitions.partition import Partition
    from protocol.records.record import Record

DAY_MS = 86_400_000
WAIT_SECONDS = 60
CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def stored(partition: Partition) -> bytes:
    return partition.log.read(0, 1 << 20, partition.log.log_end_offset).tobytes()


def stored_codecs(partition: Partition) -> list[Codec]:
    return [header.codec for _, header in iterate_headers(stored(partition))]


def stored_records(partition: Partition) -> list[Record]:
    data = memoryview(stored(partition))
    return [
        record
        for position, header in iterate_headers(data)
        for record in iterate_records(data[position : position + header.size_in_bytes])
    ]


@pytest.mark.parametrize("wanted", CODECS)
@pytest.mark.parametrize("sent", Codec)
def test_batches_are_stored_in_the_topics_codec(wanted: str, sent: Codec, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type=wanted)
        batch = records(20, value=b"again and " * 20, codec=sent)

        (answer,) = await broker.produce({(TOPIC, 0): batch})
        (second,) = await broker.produce({(TOPIC, 0): batch})

        assert [(one.error_code, one.base_offset) for one in (answer, second)] == [(0, 0), (0, 20)]
        assert (answer.log_append_time_ms, answer.log_start_offset) == (-1, 0)
        assert stored_codecs(partition) == [CODECS[wanted]] * 2
        sent_records = list(iterate_records(batch))
        found = stored_records(partition)
        assert found[:20] == sent_records
        assert [record.offset for record in found] == list(range(40))
        if sent is CODECS[wanted]:
            assert stored(partition)[21 : len(batch)] == batch[21:]

    run_data_broker(tmp_path, scenario)


def test_one_request_may_mix_recompressed_and_unchanged_batches(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=2, compression_type="zstd")
        await broker.create_topic("plain")

        answers = await broker.produce(
            {
                (TOPIC, 1): records(2),
                ("plain", 0): records(3),
                ("ghost", 0): records(1),
                (TOPIC, 0): records(4, codec=Codec.ZSTD),
                (TOPIC, 7): records(1),
            }
        )

        assert [(one.index, one.error_code, one.base_offset) for one in answers] == [
            (1, 0, 0),
            (0, 0, 0),
            (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (0, 0, 0),
            (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]

    run_data_broker(tmp_path, scenario)


def test_repeated_batch_of_an_idempotent_producer_gets_its_first_offset(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type="lz4")
        first, second, third = (
            records(5, producer_id=9, producer_epoch=0, base_sequence=5 * number)
            for number in range(3)
        )

        got = [await broker.produce({(TOPIC, 0): one}) for one in (first, second, first, second)]
        (gap,) = await broker.produce(
            {(TOPIC, 0): records(5, producer_id=9, producer_epoch=0, base_sequence=99)}
        )
        (after,) = await broker.produce({(TOPIC, 0): third})

        assert [one.base_offset for (one,) in got] == [0, 5, 0, 5]
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (after.base_offset, partition.log.log_end_offset) == (10, 15)

    run_data_broker(tmp_path, scenario)


def test_append_time_is_that_of_the_append(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(
            compression_type="gzip", message_timestamp_type="LogAppendTime"
        )

        (answer,) = await broker.produce({(TOPIC, 0): records(3, timestamp=5)})

        assert answer.log_append_time_ms == NOW_MS
        assert {record.timestamp for record in stored_records(partition)} == {NOW_MS}

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (records(1, timestamp=NOW_MS + 2 * DAY_MS), ErrorCode.INVALID_TIMESTAMP),
        (records(1, value=bytes(2000)), ErrorCode.MESSAGE_TOO_LARGE),
        (records(40, value=bytes(100), codec=Codec.ZSTD), ErrorCode.MESSAGE_TOO_LARGE),
        (records(2)[:-1] + b"\x55", ErrorCode.CORRUPT_MESSAGE),
        (records(1) + records(1), ErrorCode.INVALID_RECORD),
        (None, ErrorCode.INVALID_RECORD),
    ],
    ids=["late", "large", "large-when-unpacked", "damaged", "two", "none"],
)
def test_error_codes_are_the_same_with_recompression(
    batch: bytes | None, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        wanted = "uncompressed" if code == ErrorCode.MESSAGE_TOO_LARGE else "lz4"
        partition = await broker.create_topic(compression_type=wanted, max_message_bytes="1000")

        (answer,) = await broker.produce({(TOPIC, 0): batch})

        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_change_of_the_codec_counts_from_the_next_batch(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type="lz4")
        log = partition.log
        for codec in ("lz4", "producer", "gzip"):
            log.config = dataclasses.replace(log.config, compression_type=codec)
            await broker.produce({(TOPIC, 0): records(1)})

        assert stored_codecs(partition) == [Codec.LZ4, Codec.NONE, Codec.GZIP]

    run_data_broker(tmp_path, scenario)


def test_leader_that_resigns_meanwhile_appends_nothing(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type="lz4")

        answer = broker.call(produce_request({(TOPIC, 0): records(1)}), 12)
        broker.lead(partition, epoch=9, leader=1)
        response = await arrival(answer)

        code = response.responses[0].partition_responses[0].error_code
        assert (code, partition.log.log_end_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)

    run_data_broker(tmp_path, scenario)


def test_batch_that_was_never_appended_is_not_acknowledged(tmp_path: Path) -> None:
    """The placeholder for its answer is an error, in case that is sent by mistake."""

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(compression_type="lz4")
        request = produce_request({(TOPIC, 0): records(1)})
        received = ProduceRequest.decode(12, memoryview(bytearray(request.encode(12))))
        appends = Appends(broker.context(12), received)

        response = appends.append_all()

        assert len(appends.waiting) == 1
        (answer,) = response.responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1)

    run_data_broker(tmp_path, scenario)


def test_batches_being_recompressed_are_appended_after_a_disconnect(tmp_path: Path) -> None:
    """A client without acks hangs up when it has sent all."""

    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type="lz4")

        waiting = broker.call(produce_request({(TOPIC, 0): records(1)}), 12)
        assert isinstance(waiting, Deferred)
        assert not waiting.is_ordered_only, "the next request must wait for this one"
        waiting.abandon()
        await broker.produce({(TOPIC, 0): records(1, codec=Codec.LZ4)})
        await broker.produce({(TOPIC, 0): records(1)})

        # Nothing orders the first before the others here: its thread may be slower.
        async with asyncio.timeout(WAIT_SECONDS):
            while partition.log.log_end_offset < 3:
                await turns(1)

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("is_sound", [True, False])
def test_without_acks_there_is_no_answer_but_an_error_hangs_up(
    is_sound: bool, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(compression_type="lz4")
        timestamp = NOW_MS if is_sound else NOW_MS + 2 * DAY_MS

        request = produce_request({(TOPIC, 0): records(1, timestamp=timestamp)}, acks=0)
        with contextlib.nullcontext() if is_sound else pytest.raises(HangUp):
            assert await arrival(broker.call(request, 12)) is None
        assert partition.log.log_end_offset == is_sound

    run_data_broker(tmp_path, scenario)
