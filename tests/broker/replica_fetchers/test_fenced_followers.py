"""Fetchers that are told that somebody newer leads, before the controller has said who."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from broker.network.links import LinkError
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.runtime.clock import SystemClock
from broker.runtime.timers import Timers
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from tests.broker.replica_fetchers.nodes import BACKOFF_MS, LIMITS, TOPIC
from tests.storage.produced import TOPIC_ID
from tests.support.supervised import end, supervision

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
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
        """Nothing is open."""


def test_a_fenced_partition_may_be_led_by_nobody_after_its_fetcher_has_ended() -> None:
    async def scenario() -> None:
        leader = FencingLeader()
        timers = Timers(asyncio.get_running_loop())
        supervised = supervision(timers)
        settings = FetcherSettings(
            *(0, lambda: 1, LIMITS, BACKOFF_MS, SystemClock(), timers), ThreadPoolExecutor()
        )
        following = ReplicaFetchers(leader, settings, 1, supervised.keep)
        fenced, other = follower(0), follower(1)
        for partition in (fenced, other):
            following.partition_changed(partition)
        await leader.has_fenced.wait()
        await timers.sleep(BACKOFF_MS)

        for partition in (other, fenced):
            partition.leader_id = NOBODY
            following.partition_changed(partition)

        assert [task.cancelling() for task in supervised._tasks] == [1]
        await end(supervised)

    asyncio.run(scenario())


class Replica:
    """As much of a partition as a fetcher looks at."""

    def __init__(self, index: int) -> None:
        self.topic, self.index, self.topic_id = TOPIC, index, TOPIC_ID
        self.is_leader, self.leader_id, self.leader_epoch = False, 1, 0
        self.log = SimpleNamespace(log_end_offset=0, latest_epoch=0, log_start_offset=0)


def follower(index: int) -> Partition:
    return cast("Partition", Replica(index))
