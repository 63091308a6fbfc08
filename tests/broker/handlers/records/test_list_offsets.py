"""ListOffsets and OffsetForLeaderEpoch on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.handlers.records.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from broker.runtime.deferred import AbandonedError, Deferred
from protocol.errors import ErrorCode
from protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.broker.handlers.data_broker import TOPIC, DataBroker, records, run_data_broker
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from pathlib import Path

    from broker.partitions.partition import Partition

Wanted = ListOffsetsRequest.Topic.Partition
Answer = OffsetForLeaderEpochResponse.Topic.Partition


def request(*wanted: Wanted, topic: str = TOPIC, isolation_level: int = 0) -> ListOffsetsRequest:
    listed = ListOffsetsRequest.Topic(name=topic, partitions=list(wanted))
    return ListOffsetsRequest(
        replica_id=-1, topics=[listed], isolation_level=isolation_level, timeout_ms=60_000
    )


async def find(broker: DataBroker, timestamp: int, version: int = 11) -> tuple[int, int, int]:
    """Offset, timestamp and leader epoch of the first partition."""
    wanted = Wanted(partition_index=0, timestamp=timestamp)
    response = await broker.ask(request(wanted), version)
    (answer,) = response.topics[0].partitions
    assert answer.error_code == ErrorCode.NONE
    return answer.offset, answer.timestamp, answer.leader_epoch


async def two_epochs(broker: DataBroker) -> Partition:
    """Offsets 0 to 5 in epoch 0 and 6 to 8 in epoch 5; batches of three, 100 ms apart."""
    partition = await broker.create_topic()
    for number in range(3):
        if number == 2:
            broker.lead(partition, 5)
        batch = records(3, timestamp=NOW_MS + 100 * number, codec=Codec.GZIP)
        await broker.produce({(TOPIC, 0): batch})
    return partition


@pytest.mark.parametrize("version", range(1, 12))
def test_ends_of_the_log_have_no_timestamp(version: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await two_epochs(broker)
        partition.log.advance_log_start_offset(2)
        has_epoch = version >= 4

        assert await find(broker, EARLIEST, version) == (2, -1, 0 if has_epoch else -1)
        assert await find(broker, LATEST, version) == (9, -1, 5 if has_epoch else -1)

    run_data_broker(tmp_path, scenario)


def test_latest_on_an_empty_log_has_the_leaders_epoch(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.lead(partition, 5)

        assert await find(broker, LATEST) == (0, -1, 5)
        assert await find(broker, MAX_TIMESTAMP) == (-1, -1, -1)
        assert await find(broker, 0) == (-1, -1, -1)

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("after_ms", "offset", "found_after_ms", "epoch"),
    [(-1000, 0, 0, 0), (1, 1, 1, 0), (3, 3, 100, 0), (102, 5, 102, 0), (103, 6, 200, 5)],
)
def test_first_record_that_is_not_earlier_is_found_within_its_batch(
    after_ms: int, offset: int, found_after_ms: int, epoch: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)

        assert await find(broker, NOW_MS + after_ms) == (offset, NOW_MS + found_after_ms, epoch)
        assert await find(broker, NOW_MS + 203) == (-1, -1, -1)

    run_data_broker(tmp_path, scenario)


def test_timestamps_out_of_order_are_found_by_the_first_that_is_late_enough(
    tmp_path: Path,
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        for delays in ([500, 100], [50, 700, 60]):
            batch = build_batch([NewRecord(NOW_MS + ms, None, b"v") for ms in delays])
            await broker.produce({(TOPIC, 0): bytes(batch)})

        assert await find(broker, NOW_MS + 80) == (0, NOW_MS + 500, 0)
        assert await find(broker, NOW_MS + 501) == (3, NOW_MS + 700, 0)
        assert await find(broker, MAX_TIMESTAMP) == (3, NOW_MS + 700, 0)

    run_data_broker(tmp_path, scenario)


def look_up(broker: DataBroker, timestamp: int) -> Any:
    """The search of a time in the first partition, on its way."""
    wanted = Wanted(partition_index=0, timestamp=timestamp)
    return broker.call(request(wanted), 11)


def first_answer(response: Any) -> Any:
    (answer,) = response.topics[0].partitions
    return answer


def test_a_record_is_found_to_the_millisecond_behind_one_from_the_future(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(message_timestamp_after_max_ms=str(2**60))
        await broker.produce({(TOPIC, 0): records(timestamp=NOW_MS + 2**50)})
        for number in range(300):
            stamp = NOW_MS + 10 * number
            batch = records(2, timestamp=stamp, codec=Codec.LZ4 if number % 2 else Codec.NONE)
            await broker.produce({(TOPIC, 0): batch})
        partition.log.advance_log_start_offset(1)

        assert await find(broker, NOW_MS + 2991) == (600, NOW_MS + 2991, 0)
        assert await find(broker, NOW_MS + 2981) == (598, NOW_MS + 2981, 0)
        assert await find(broker, NOW_MS + 2982) == (599, NOW_MS + 2990, 0)
        assert await find(broker, MAX_TIMESTAMP) == (600, NOW_MS + 2991, 0)
        assert await find(broker, NOW_MS + 3000) == (-1, -1, -1)

    run_data_broker(tmp_path, scenario)


def test_a_leader_change_during_the_search_answers_not_leader(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await two_epochs(broker)
        search = look_up(broker, NOW_MS + 101)
        assert isinstance(search, Deferred)

        broker.lead(partition, 6, leader=1, isr=(1,))

        answer = first_answer(await arrival(search))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.offset == -1

    run_data_broker(tmp_path, scenario)


def test_a_topic_deleted_during_the_search_is_answered(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)
        search = look_up(broker, NOW_MS + 101)

        await broker.delete_topic()

        answer = first_answer(await arrival(search))
        assert answer.error_code in {
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.KAFKA_STORAGE_ERROR,
        }

    run_data_broker(tmp_path, scenario)


def test_a_search_is_abandoned_with_its_connection(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)
        search = look_up(broker, NOW_MS + 101)

        search.abandon()
        await find(broker, NOW_MS + 101)

        assert isinstance(search._error, AbandonedError)

    run_data_broker(tmp_path, scenario)


def test_records_past_the_high_watermark_are_not_found(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await two_epochs(broker)
        broker.lead(partition, 6, isr=(0, 1))
        await broker.produce({(TOPIC, 0): records(1, timestamp=NOW_MS + 900)}, acks=1)

        assert (await find(broker, LATEST))[0] == 9
        assert await find(broker, NOW_MS + 900) == (-1, -1, -1)

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [
        (MAX_TIMESTAMP, 7),
        (EARLIEST_LOCAL, 8),
        (LATEST_TIERED, 9),
        (EARLIEST_PENDING_UPLOAD, 11),
        (-7, 99),
    ],
)
def test_special_timestamps_need_their_version(
    timestamp: int, first_version: int, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)
        for version in range(1, 12):
            wanted = Wanted(partition_index=0, timestamp=timestamp)
            answer = (await broker.ask(request(wanted), version)).topics[0].partitions[0]
            is_known = version >= first_version
            code = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
            assert (version, answer.error_code) == (version, code)

    run_data_broker(tmp_path, scenario)


def test_tiered_offsets_are_answered_as_without_remote_storage(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)

        assert await find(broker, EARLIEST_LOCAL) == (0, -1, 0)
        assert await find(broker, LATEST_TIERED) == (-1, -1, -1)
        assert await find(broker, EARLIEST_PENDING_UPLOAD) == (-1, -1, -1)

    run_data_broker(tmp_path, scenario)


def test_each_partition_gets_its_own_error_code(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(count=3)
        broker.lead(partition, 5)
        third = broker.replicas.partition(TOPIC, 2)
        assert third is not None
        broker.lead(third, 5, leader=1, isr=(1,))

        response = await broker.ask(
            request(
                Wanted(partition_index=0, current_leader_epoch=4, timestamp=LATEST),
                Wanted(partition_index=1, timestamp=LATEST),
                Wanted(partition_index=1, timestamp=EARLIEST),
                Wanted(partition_index=2, timestamp=LATEST),
                Wanted(partition_index=7, timestamp=LATEST),
            ),
            11,
        )

        answers = response.topics[0].partitions
        assert [answer.error_code for answer in answers] == [
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert {(answer.offset, answer.timestamp) for answer in answers} == {(-1, -1)}

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "end"), [(0, (0, 6)), (3, (0, 6)), (5, (5, 9)), (6, (-1, -1)), (-1, (-1, -1))]
)
def test_end_of_a_leader_epoch(
    version: int, epoch: int, end: tuple[int, int], tmp_path: Path
) -> None:
    """Given epoch 0 up to offset 6, and 5 up to 9: the end of the greatest one up to `epoch`."""

    async def scenario(broker: DataBroker) -> None:
        await two_epochs(broker)

        answer = await ask_epoch(broker, version, leader_epoch=epoch)

        assert (answer.leader_epoch, answer.end_offset) == end

    run_data_broker(tmp_path, scenario)


async def ask_epoch(broker: DataBroker, version: int, topic: str = TOPIC, **fields: int) -> Answer:
    kind = OffsetForLeaderEpochRequest.Topic
    values = {"partition": 0, "leader_epoch": 0, **fields}
    listed = kind(topic=topic, partitions=[kind.Partition(**values)])
    response = await broker.ask(OffsetForLeaderEpochRequest(topics=[listed]), version)
    answer: Answer = response.topics[0].partitions[0]
    return answer


def test_leader_epochs_are_refused_like_other_reads(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await two_epochs(broker)

        assert [
            (await ask_epoch(broker, 4, current_leader_epoch=4)).error_code,
            (await ask_epoch(broker, 4, current_leader_epoch=6)).error_code,
            (await ask_epoch(broker, 4, partition=7)).error_code,
            (await ask_epoch(broker, 4, topic="ghost")).error_code,
        ] == [
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        broker.lead(partition, 6, leader=1, isr=(1,))
        refused = await ask_epoch(broker, 4)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_data_broker(tmp_path, scenario)
