"""Produce on one broker: each way in which a batch is taken or refused, partition by partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from broker.runtime.deferred import HangUp
from protocol.errors import ErrorCode
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.broker.handlers.data_broker import (
    BY_ID,
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.controller.harness import NOW_MS, turns

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000


def damaged(position: int, value: int) -> bytes:
    batch = bytearray(records(2))
    batch[position] = value
    return bytes(batch)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_batches_get_the_next_offsets(version: int, acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        topic = partition.topic_id if version >= BY_ID else TOPIC

        first = await broker.produce({(topic, 0): records(3)}, version, acks)
        second = await broker.produce({(topic, 0): records(2)}, version, acks)

        assert [(one.error_code, one.base_offset) for one in first + second] == [(0, 0), (0, 3)]
        assert [one.log_append_time_ms for one in first] == [-1]
        assert [one.log_start_offset for one in first] == [0]
        assert partition.log.high_watermark == 5

    run_data_broker(tmp_path, scenario)


def test_bad_partition_does_not_fail_the_others(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=2)

        answers = await broker.produce(
            {
                (TOPIC, 0): records(1),
                (TOPIC, 7): records(1),
                ("ghost", 0): records(1),
                (TOPIC, 1): records(1),
            }
        )

        assert [one.error_code for one in answers] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NONE,
        ]
        assert [one.base_offset for one in answers] == [0, -1, -1, 0]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (records(1) + records(1), ErrorCode.INVALID_RECORD),
        (records(2)[:-1], ErrorCode.INVALID_RECORD),
        (damaged(-1, 0x55), ErrorCode.CORRUPT_MESSAGE),
        (records(1, is_control=True), ErrorCode.INVALID_RECORD),
        (records(1, producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
        (records(1, base_offset=5), ErrorCode.INVALID_RECORD),
        (records(1, value=bytes(2000)), ErrorCode.MESSAGE_TOO_LARGE),
        (records(1, timestamp=NOW_MS + 2 * DAY_MS), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else f"{len(value or b'')}-bytes",
)
def test_unsound_batch_is_refused_with_its_code(
    batch: bytes | None, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(max_message_bytes="1000")

        (answer,) = await broker.produce({(TOPIC, 0): batch})

        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_message_size_limit_is_that_of_the_compressed_batch(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(max_message_bytes="1000")
        batch = records(1, value=bytes(5000), codec=Codec.LZ4)

        (answer,) = await broker.produce({(TOPIC, 0): batch})

        assert answer.error_code == ErrorCode.NONE

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_stored_in_the_producers_codec(codec: Codec, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        batch = records(50, value=b"again and " * 20, codec=codec)

        (answer,) = await broker.produce({(TOPIC, 0): batch})

        assert answer.error_code == ErrorCode.NONE
        assert partition.log.read(0, 1 << 20, 50).tobytes()[21:] == batch[21:]

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [6, 7])
def test_zstd_needs_version_7(version: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        (answer,) = await broker.produce({(TOPIC, 0): records(1, codec=Codec.ZSTD)}, version)

        assert answer.error_code == (
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else ErrorCode.NONE
        )

    run_data_broker(tmp_path, scenario)


def test_compacted_topic_names_the_records_without_key(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(cleanup_policy="compact")
        mixed = [NewRecord(NOW_MS, key, b"v") for key in (b"k", None, b"k", None)]

        (answer,) = await broker.produce({(TOPIC, 0): bytes(build_batch(mixed))})

        assert answer.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in answer.record_errors] == [1, 3]
        assert answer.error_message

    run_data_broker(tmp_path, scenario)


def test_log_append_time_is_set_and_returned(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(message_timestamp_type="LogAppendTime")

        (answer,) = await broker.produce({(TOPIC, 0): records(2, timestamp=5)})

        assert answer.log_append_time_ms == NOW_MS
        found = partition.log.offset_of_max_timestamp()
        assert found is not None
        assert (found.offset, found.timestamp) == (0, NOW_MS)

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_unknown_acks_are_refused_for_all_partitions(acks: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(count=2)

        answers = await broker.produce({(TOPIC, 0): records(), (TOPIC, 1): records()}, 12, acks)

        assert [one.error_code for one in answers] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_acks_0_is_not_answered(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()

        assert broker.call(produce_request({(TOPIC, 0): records(2)}, acks=0), 12) is None

        assert partition.log.log_end_offset == 2

    run_data_broker(tmp_path, scenario)


def test_acks_0_with_an_error_ends_the_connection_but_appends_what_is_sound(
    tmp_path: Path,
) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        request = produce_request({("ghost", 0): records(), (TOPIC, 0): records()}, acks=0)

        with pytest.raises(HangUp, match="ghost-0"):
            broker.call(request, 12)

        assert partition.log.log_end_offset == 1

    run_data_broker(tmp_path, scenario)


def test_too_few_in_sync_replicas_refuse_acks_all_before_the_append(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(min_insync_replicas="2")
        broker.lead(partition, partition.leader_epoch + 1)

        (refused,) = await broker.produce({(TOPIC, 0): records()}, acks=-1)
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert partition.log.log_end_offset == 0

        (taken,) = await broker.produce({(TOPIC, 0): records()}, acks=1)
        assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)

    run_data_broker(tmp_path, scenario)


def test_acks_all_waits_for_the_followers_until_the_timeout(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.lead(partition, partition.leader_epoch + 1, isr=(0, 1))
        request = produce_request({(TOPIC, 0): records()})
        request.timeout_ms = 1

        response = broker.call(request, 12)
        assert not response.is_complete
        (answer,) = await broker.produce({(TOPIC, 0): records()}, acks=1)
        assert answer.base_offset == 1, "it was appended, and may still be committed"

        late = await broker.produce({(TOPIC, 0): records()}, acks=-1, timeout_ms=1)
        assert late[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert response.value.responses[0].partition_responses[0].error_code == (
            ErrorCode.REQUEST_TIMED_OUT
        )

    run_data_broker(tmp_path, scenario)


def test_acks_all_is_answered_when_the_others_leave_the_isr(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        epoch = partition.leader_epoch + 1
        broker.lead(partition, epoch, isr=(0, 1))
        response = broker.call(produce_request({(TOPIC, 0): records()}), 12)
        assert not response.is_complete

        broker.lead(partition, epoch, isr=(0,))

        answer = response.value.responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)

    run_data_broker(tmp_path, scenario)


def test_acks_all_fails_when_leadership_is_lost_meanwhile(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        epoch = partition.leader_epoch + 1
        broker.lead(partition, epoch, isr=(0, 1))
        response = broker.call(produce_request({(TOPIC, 0): records()}), 12)

        broker.lead(partition, epoch + 1, leader=1, isr=(0, 1))

        answer = response.value.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        (refused,) = await broker.produce({(TOPIC, 0): records()})
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_data_broker(tmp_path, scenario)


def test_gone_client_leaves_no_timer_behind(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        epoch = partition.leader_epoch + 1
        broker.lead(partition, epoch, isr=(0, 1))
        response = broker.call(produce_request({(TOPIC, 0): records()}), 12)

        response.abandon()
        broker.lead(partition, epoch, isr=(0,))
        await turns()

        assert not response.is_complete

    run_data_broker(tmp_path, scenario)


def test_log_start_offset_is_returned_after_records_were_deleted(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        await broker.produce({(TOPIC, 0): records(5)})
        partition.log.advance_log_start_offset(3)

        (answer,) = await broker.produce({(TOPIC, 0): records()})

        assert (answer.base_offset, answer.log_start_offset) == (5, 3)

    run_data_broker(tmp_path, scenario)


def test_id_of_a_former_incarnation_is_unknown(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        former = (await broker.create_topic()).topic_id
        await broker.delete_topic()
        partition = await broker.create_topic()
        assert partition.topic_id != former

        answers = await broker.produce(
            {
                (former, 0): records(),
                (UUID(int=0), 0): records(),
                (partition.topic_id, 5): records(),
            },
            BY_ID,
        )

        assert [one.error_code for one in answers] == [
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("client_id", "code"),
    [("a-client", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", ErrorCode.NONE)],
)
def test_internal_topics_are_for_the_admin_client_only(
    client_id: str, code: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic("__consumer_offsets")
        request = produce_request({("__consumer_offsets", 0): records()}, acks=1)

        response: Any = broker.call(request, 12, client_id)

        assert response.responses[0].partition_responses[0].error_code == code

    run_data_broker(tmp_path, scenario)


def test_offline_log_directory_is_a_storage_error_and_others_go_on(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        partition.log.directory.fail(OSError(28, "No space left on device"))

        (answer,) = await broker.produce({(TOPIC, 0): records()})

        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run_data_broker(tmp_path, scenario)
