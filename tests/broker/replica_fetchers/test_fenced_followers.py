"""Fetchers fenced by a newer leader before the controller has named it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from broker.network.links import LinkError
from broker.partitions.partition import Partition
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.runtime.clock import SystemClock
from broker.runtime.timers import Timers
from config.topic import TopicConfig
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from tests.broker.replica_fetchers.harness import surroundings
from tests.broker.replica_fetchers.nodes import BACKOFF_MS, LIMITS, TOPIC
from tests.storage.produced import NOW_MS, TOPIC_ID, open_directories
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request

Answer = FetchResponse.Response.Partition
NOBODY = -1


class FencingLeader:
    """A link to a leader that answers once: partition 0 is fenced. Then nothing more comes."""

    def __init__(self) -> None:
        self.has_fenced = asyncio.Event()

    def link(self, broker_id: int, purpose: str) -> FencingLeader:
        assert (broker_id, purpose) == (1, "broker-0-fetcher-0")
        return self

    async def ask(self, request: Request, version: int) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        assert version == 17
        if self.has_fenced.is_set():
            await asyncio.get_running_loop().create_future()
            raise LinkError("never")
        self.has_fenced.set()
        fenced = Answer(
            partition_index=0,
            error_code=ErrorCode.FENCED_LEADER_EPOCH,
            high_watermark=NOBODY,
            records=b"",
        )
        topic = FetchResponse.Response(topic_id=TOPIC_ID, partitions=[fenced])
        return FetchResponse(session_id=5, responses=[topic])

    def close(self) -> None:
        """Do nothing: nothing is open."""


def test_a_fenced_partition_may_become_leaderless_after_its_fetcher_ended(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        leader = FencingLeader()
        timers = Timers(asyncio.get_running_loop())
        supervised = supervision(timers)
        settings = FetcherSettings(
            *(0, lambda: 1, LIMITS, BACKOFF_MS, SystemClock(), timers), ThreadPoolExecutor()
        )
        following = ReplicaFetchers(leader, settings, 1, supervised.keep)
        logs = open_directories(tmp_path)
        fenced, other = (
            Partition(
                logs.create(TOPIC, index, TOPIC_ID, TopicConfig(), NOW_MS),
                surroundings(0, timers),
            )
            for index in (0, 1)
        )
        for partition in (fenced, other):
            partition.assume(follow(partition, leader=1, epoch=0))
            following.partition_changed(partition)
        await leader.has_fenced.wait()
        await timers.sleep(BACKOFF_MS)

        for partition in (other, fenced):
            partition.assume(follow(partition, leader=NOBODY, epoch=1))
            following.partition_changed(partition)

        assert [task.cancelling() for task in supervised._tasks] == [1]
        await end(supervised)

    asyncio.run(scenario())


def follow(partition: Partition, leader: int, epoch: int) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=partition.index,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=[1],
        partition_epoch=epoch,
        replicas=[0, 1],
    )
