"""Long produce requests: other clients do not wait, and the answers are those of short ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from broker.handlers.records.appends import UNTIMED_BATCHES
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.compute_pool import ComputePool
from broker.runtime.deferred import Deferred
from protocol.errors import ErrorCode
from protocol.records.compression import Codec
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.arrival import arrival
from tests.support.broker_parts.services import StandingClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.partitions.partition import Partition

T = TypeVar("T")

PARTITIONS = 60


class SlowClock(StandingClock):
    """Clock that advances, at each look, by a millisecond for each batch appended since."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic_ms(self) -> int:
        self._looks += 1
        return self._looks * UNTIMED_BATCHES


class CountedSideWork(ComputePool):
    """Notes how much was under way at once, and what came of it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.under_way = self.most_under_way = 0
        self.results: list[Any] = []

    def run(self, work: Callable[[], T]) -> Deferred[T]:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)

        def count(result: T) -> T:
            self.under_way -= 1
            self.results.append(result)
            return result

        return super().run(work).map(count)


def stored(partition: Partition) -> bytes:
    return partition.log.read(0, 1 << 20, partition.log.log_end_offset).tobytes()


def bomb(codec: Codec, **fields: Any) -> bytes:
    """Twenty megabytes, in a batch of which a topic takes many more."""
    return records(1, value=bytes(20_000_000), codec=codec, **fields)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.SNAPPY, Codec.ZSTD])
def test_batch_that_decompresses_to_much_is_checked_beside_the_loop(
    codec: Codec, tmp_path: Path
) -> None:
    batch = bomb(codec)

    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(max_message_bytes="2000000")

        waiting = broker.call(produce_request({(TOPIC, 0): batch}), 12)
        assert isinstance(waiting, Deferred)
        assert not waiting.is_complete
        assert partition.log.log_end_offset == 0
        response = await arrival(waiting)

        answer = response.responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, 0)
        assert stored(partition)[21:] == batch[21:], "as it was sent, but for what leaders patch"

    run_data_broker(tmp_path, scenario)


def test_batch_that_compresses_well_is_checked_in_passing(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        batch = records(1000, value=b"again and again " * 30, codec=Codec.ZSTD)
        assert len(batch) < 500_000 / 50

        outcome = broker.call(produce_request({(TOPIC, 0): batch}), 12)

        assert not isinstance(outcome, Deferred) or outcome.is_complete

    run_data_broker(tmp_path, scenario)


def test_large_contents_are_refused_as_small_ones_are(tmp_path: Path) -> None:
    unsound = bytearray(bomb(Codec.ZSTD))
    unsound[-1] ^= 1
    late = bomb(Codec.ZSTD, timestamp=10**15)

    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(cleanup_policy="compact")

        answers = [
            (await broker.produce({(TOPIC, 0): bytes(batch)}))[0] for batch in (unsound, late)
        ]

        assert [answer.error_code for answer in answers] == [
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_TIMESTAMP,
        ]
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_request_of_many_batches_is_appended_in_turns(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=PARTITIONS)
        partitions = broker.replicas.by_topic[TOPIC]
        broker.services.clock = SlowClock()
        work = broker.services.compute_pool
        counted = CountedSideWork(work._loop, _SamePlatform(work))
        broker.services.compute_pool = counted
        batches: dict[Any, Any] = {
            (TOPIC, index): records(index + 1) for index in range(PARTITIONS)
        }

        waiting = broker.call(produce_request(batches), 12)
        at_once = sum(one.log.log_end_offset > 0 for one in partitions.values())
        response = await arrival(waiting)

        assert 0 < at_once < PARTITIONS / 2
        answers = [one.partition_responses[0] for one in response.responses]
        assert [(one.index, one.error_code, one.base_offset) for one in answers] == [
            (index, 0, 0) for index in range(PARTITIONS)
        ]
        ends = [partitions[index].log.log_end_offset for index in range(PARTITIONS)]
        assert ends == list(range(1, PARTITIONS + 1))
        assert counted.results == [], "a thread would cost more than the batch"

    run_data_broker(tmp_path, scenario)


def test_request_in_steps_is_never_late(tmp_path: Path) -> None:
    """Others are served between its steps: their time is not its own."""

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=PARTITIONS)
        partitions = broker.replicas.by_topic[TOPIC]
        broker.services.clock = SlowClock()
        work = broker.services.compute_pool
        counted = CountedSideWork(work._loop, _SamePlatform(work))
        broker.services.compute_pool = counted
        batches: dict[Any, Any] = {(TOPIC, index): records(1) for index in range(PARTITIONS)}

        request = produce_request(batches)
        context = Context(
            *(broker.services, 12, "a-client", "PLAINTEXT", "/127.0.0.1", "User:A", NOW_MS),
            is_long=True,
        )
        frame = memoryview(bytearray(request.encode(12)))
        outcome = ROUTES[int(request.API_KEY)].handler(context, type(request).decode(12, frame))
        if isinstance(outcome, Deferred):
            await arrival(outcome)

        assert counted.results == []
        assert [one.log.log_end_offset for one in partitions.values()] == [1] * PARTITIONS

    run_data_broker(tmp_path, scenario)


def test_request_takes_one_thread_however_much_it_brings(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=5, compression_type="zstd")
        work = broker.services.compute_pool
        counted = CountedSideWork(work._loop, _SamePlatform(work))
        broker.services.compute_pool = counted

        answers = await broker.produce({(TOPIC, index): records(9) for index in range(5)})

        assert [answer.error_code for answer in answers] == [0] * 5
        assert counted.most_under_way == 1

    run_data_broker(tmp_path, scenario)


class _SamePlatform:
    """Gives the threads that there are already."""

    def __init__(self, work: ComputePool) -> None:
        self._executor = work._executor

    def threads(self, *_: object) -> Any:
        return self._executor


def test_errors_from_threads_keep_no_frames_alive(tmp_path: Path) -> None:
    """A frame that returned an error, and is in its traceback, would be a garbage cycle."""
    batch = bomb(Codec.ZSTD, timestamp=10**15)

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        work = broker.services.compute_pool
        counted = CountedSideWork(work._loop, _SamePlatform(work))
        broker.services.compute_pool = counted

        await broker.produce({(TOPIC, 0): batch})

        (error,) = counted.results
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert error.__traceback__ is None

    run_data_broker(tmp_path, scenario)
