"""A fetcher with delayed partitions fetches the others, and rests."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from broker.network.links import LinkError
from broker.partitions.partition import Partition
from broker.partitions.throttle import Span, Throttle
from broker.replica_fetchers.fetcher import FetcherSettings, ReplicaFetcher
from broker.runtime.timers import Timers
from config.topic import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from tests.broker.replica_fetchers.harness import surroundings
from tests.broker.replica_fetchers.nodes import LIMITS, TOPIC
from tests.storage.produced import NOW_MS, TOPIC_ID, batch, open_directories
from tests.support.broker_parts.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from protocol.schema import Request

Answer = FetchResponse.Response.Partition

BACKOFF_MS = 1000
ANSWER_MS = 100
HOUR_MS = 3_600_000
REFUSED, OTHER = 0, 1


class Leader:
    """A link to a leader that does not lead REFUSED, and has nothing new of the others.

    It takes ANSWER_MS to say so, and after some answers it is silent.
    """

    def __init__(self, timers: Timers, answers: int) -> None:
        self.refusal = ErrorCode.UNKNOWN_LEADER_EPOCH
        self.records = b""
        """Records of REFUSED, if it is not refused."""
        self._timers = timers
        self._clock = LoopClock()
        self._began_ms = self._clock.monotonic_ms()
        self._answers = answers
        self._session: set[int] = set()
        self.asked: list[tuple[int, tuple[int, ...]]] = []
        """Time in milliseconds and partitions of each request."""

    async def ask(self, request: Request, version: int) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        assert version == 17
        if not request.session_epoch:
            self._session = set()
        for topic in request.topics:
            self._session.update(one.partition for one in topic.partitions)
        for forgotten in request.forgotten_topics_data:
            self._session.difference_update(forgotten.partitions)
        elapsed_ms = self._clock.monotonic_ms() - self._began_ms
        self.asked.append((elapsed_ms, tuple(sorted(self._session))))
        if len(self.asked) > self._answers:
            await asyncio.get_running_loop().create_future()
            raise LinkError("never")
        await self._timers.sleep(ANSWER_MS)
        answers = [
            Answer(
                partition_index=index,
                error_code=self.refusal if index == REFUSED else 0,
                high_watermark=0,
                log_start_offset=0,
                records=memoryview(self.records if index == REFUSED else b""),
            )
            for index in sorted(self._session)
        ]
        answered = FetchResponse.Response(topic_id=TOPIC_ID, partitions=answers)
        return FetchResponse(session_id=5, responses=[answered])

    def close(self) -> None:
        """Do nothing: nothing is open."""


class CountingLane:
    """Moves nothing; counts how often the fetcher looks for work."""

    def __init__(self) -> None:
        self.looks = 0

    def before_asking(self, fetcher: ReplicaFetcher) -> None:
        self.looks += 1

    def found(self, fetcher: ReplicaFetcher, partition: Partition, *, is_behind: bool) -> None:
        assert not is_behind


class Following:
    """A fetcher of broker 0 at work on a leader, and two partitions to assign to it."""

    def __init__(self, directory: Path, answers: int) -> None:
        self.timers = Timers(asyncio.get_running_loop())
        self.lane = CountingLane()
        self.leader = Leader(self.timers, answers)
        self.throttle = Throttle(
            0,
            lambda config: config.follower_replication_throttled_replicas,
            Span(11, 1000),
            LoopClock().monotonic_ms,
        )
        self._threads = ThreadPoolExecutor()
        settings = FetcherSettings(
            local_id=0,
            broker_epoch=lambda: 1,
            limits=LIMITS,
            backoff_ms=BACKOFF_MS,
            clock=LoopClock(),
            timers=self.timers,
            disk_threads=self._threads,
            throttle=self.throttle,
        )
        self.fetcher = ReplicaFetcher(1, self.leader, settings, self.lane)
        self._logs = open_directories(directory)
        self._task = asyncio.get_running_loop().create_task(self.fetcher.run())

    def follow(self, index: int, config: TopicConfig | None = None) -> None:
        """Give the fetcher a partition that its leader leads."""
        log = self._logs.create(TOPIC, index, TOPIC_ID, config or TopicConfig(), NOW_MS)
        partition = Partition(log, surroundings(0, self.timers, LoopClock()))
        partition.assume(
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=1,
                leader=1,
                leader_epoch=0,
                isr=[1],
                partition_epoch=0,
                replicas=[0, 1],
            )
        )
        self.fetcher.follow(partition)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._threads.shutdown()
        self._logs.close()


async def _given_while_another_is_delayed(directory: Path) -> None:
    following = Following(directory, answers=1)
    following.follow(REFUSED)
    await following.timers.sleep(ANSWER_MS + 50)

    following.follow(OTHER)

    await following.timers.sleep(HOUR_MS)
    assert following.leader.asked == [(0, (REFUSED,)), (150, (OTHER,))]
    await following.end()


async def _given_while_a_request_is_under_way(directory: Path) -> None:
    following = Following(directory, answers=1)
    following.follow(REFUSED)
    await following.timers.sleep(ANSWER_MS / 2)

    following.follow(OTHER)

    await following.timers.sleep(HOUR_MS)
    assert following.leader.asked == [(0, (REFUSED,)), (100, (OTHER,))]
    await following.end()


async def _given_while_another_is_held_up(directory: Path) -> None:
    following = Following(directory, answers=0)
    following.throttle.bytes_per_second = 1
    following.throttle.record(HOUR_MS)
    following.follow(OTHER, TopicConfig(follower_replication_throttled_replicas=("*",)))
    await following.timers.sleep(50)

    following.follow(OTHER + 1)

    await following.timers.sleep(HOUR_MS)
    assert following.leader.asked == [(50, (OTHER + 1,))]
    await following.end()


async def _delayed_alone(directory: Path) -> None:
    following = Following(directory, answers=2)
    following.follow(REFUSED)

    await following.timers.sleep(HOUR_MS)

    assert following.leader.asked == [(0, (REFUSED,)), (1100, (REFUSED,)), (2200, (REFUSED,))]
    assert following.lane.looks == 2 * len(following.leader.asked) - 1
    await following.end()


def test_a_partition_given_while_another_is_delayed_is_asked_for_at_once(tmp_path: Path) -> None:
    run_in_virtual_time(_given_while_another_is_delayed(tmp_path))


def test_a_partition_given_while_a_request_is_under_way_is_in_the_next(tmp_path: Path) -> None:
    run_in_virtual_time(_given_while_a_request_is_under_way(tmp_path))


def test_a_partition_given_while_another_is_held_up_is_asked_for_at_once(tmp_path: Path) -> None:
    run_in_virtual_time(_given_while_another_is_held_up(tmp_path))


def test_a_fetcher_with_only_delayed_partitions_sleeps(tmp_path: Path) -> None:
    run_in_virtual_time(_delayed_alone(tmp_path))


async def _refused_then_damaged_then_well(directory: Path) -> None:
    following = Following(directory, answers=30)
    leader = following.leader
    following.follow(REFUSED)
    await following.timers.sleep(9 * BACKOFF_MS)

    damaged = bytearray(batch())
    damaged[-1] ^= 1
    leader.refusal, leader.records = ErrorCode.NONE, bytes(damaged)
    await following.timers.sleep(9 * BACKOFF_MS)
    assert 15 < len(leader.asked) < 20

    leader.records = b""
    await following.timers.sleep(HOUR_MS)
    await following.end()


def test_a_partition_that_cannot_be_followed_is_logged_once_per_reason_and_on_recovery(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "broker.replica_fetchers")
    name = f"{TOPIC}-{REFUSED}"

    run_in_virtual_time(_refused_then_damaged_then_well(tmp_path))

    refused, damaged, well = [one.getMessage() for one in caplog.records]
    assert refused == f"leader 1 returned UNKNOWN_LEADER_EPOCH for {name}"
    assert damaged.startswith(f"{name} cannot be followed: CORRUPT_MESSAGE")
    assert well == f"leader 1 is followed again for {name}"
