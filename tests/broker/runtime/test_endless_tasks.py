"""Endless tasks continue after an unforeseen error, and lose nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import http.client
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn, cast

import pytest

from broker.cluster.control_channels import ControlChannels
from broker.http import endpoint
from broker.maintenance import log_cleaner
from broker.maintenance.log_cleaner import LogCleaner
from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.metadata_cache import MetadataCache
from broker.metadata.topic_configs import TopicConfigs
from broker.metrics.endpoint import MetricsEndpoint
from broker.network.links import LinkError
from broker.partitions.partition import Partition
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.topic import TopicConfig
from controller.brokers.registration import create_skeleton
from protocol.messages.fetch import FetchResponse
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from storage.compaction import choice
from tests.broker.replica_fetchers.harness import surroundings
from tests.broker.replica_fetchers.nodes import BACKOFF_MS, LIMITS
from tests.controller.memory_store import MemoryEnsemble
from tests.storage.compaction.compacting import keyed
from tests.storage.produced import NOW_MS, SMALL, TOPIC_ID, append, batch, open_directories
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision
from tests.support.broker_parts.virtual_time import run_in_virtual_time
from tests.support.written_configs import write_config

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from broker.runtime.supervision import Supervision
    from protocol.schema import Request, Response
    from storage.log.log import Log

SECONDS = 60


def odd(*_: object) -> NoReturn:
    raise ValueError("odd")


def supervised(scenario: Callable[[Supervision], Awaitable[None]]) -> None:
    async def run() -> None:
        supervising = supervision()
        async with asyncio.timeout(SECONDS):
            await scenario(supervising)
        await end(supervising)

    asyncio.run(run())


def news() -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=0, controller_epoch=1, live_brokers=[])


async def until(supervising: Supervision, is_reached: Callable[[], bool]) -> None:
    while not is_reached():
        await supervising.timers.sleep(2)


class FeedingLeader:
    """A link to a leader with ten records in each of two partitions; may raise at first."""

    def __init__(self, errors: int = 0) -> None:
        self._errors = errors
        self.asked = 0

    def link(self, broker_id: int, purpose: str) -> FeedingLeader:
        return self

    async def ask(self, request: Request, version: int) -> FetchResponse:
        await asyncio.sleep(0)  # noqa: TID251
        self.asked += 1
        if self.asked <= self._errors:
            odd()
        partitions = [
            FetchResponse.Response.Partition(
                partition_index=index,
                error_code=0,
                high_watermark=10,
                records=memoryview(bytearray(batch(10))),
            )
            for index in range(2)
        ]
        topic = FetchResponse.Response(topic_id=TOPIC_ID, partitions=partitions)
        return FetchResponse(session_id=0, responses=[topic])

    def close(self) -> None:
        """Do nothing: nothing is open."""


def follow(directory: Path, supervising: Supervision, leader: FeedingLeader) -> list[Partition]:
    """Two partitions of a broker 0 that broker 1 leads."""
    logs = open_directories(directory)
    settings = FetcherSettings(
        *(0, lambda: 1, LIMITS, BACKOFF_MS, SystemClock(), supervising.timers),
        ThreadPoolExecutor(1),
        note_failure=supervising.note,
    )
    following = ReplicaFetchers(leader, settings, 1, supervising.keep)
    partitions = []
    for index in range(2):
        log = logs.create("flights", index, TOPIC_ID, TopicConfig(), NOW_MS)
        partition = Partition(log, surroundings(0, supervising.timers))
        partition.assume(
            LeaderAndIsrPartitionState(
                partition_index=index,
                controller_epoch=1,
                leader=1,
                leader_epoch=1,
                isr=[1],
                partition_epoch=1,
                replicas=[0, 1],
            )
        )
        following.partition_changed(partition)
        partitions.append(partition)
    return partitions


def test_a_fetcher_goes_on_after_an_error(tmp_path: Path) -> None:
    async def scenario(supervising: Supervision) -> None:
        partitions = follow(tmp_path, supervising, FeedingLeader(errors=2))
        await until(supervising, lambda: all(one.log.log_end_offset == 10 for one in partitions))
        assert supervising.failures == {"follow broker 1": 2}

    supervised(scenario)


def test_a_partition_that_cannot_be_appended_to_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_from_leader = Partition.append_from_leader
    failures = [0]

    def fail_at_first(partition: Partition, *args: Any) -> None:
        if partition.index == 0 and len(failures) < 4:
            failures.append(0)
            odd()
        append_from_leader(partition, *args)

    monkeypatch.setattr(Partition, "append_from_leader", fail_at_first)

    async def scenario(supervising: Supervision) -> None:
        first, second = follow(tmp_path, supervising, FeedingLeader())
        await until(supervising, lambda: second.log.log_end_offset == 10)
        assert first.log.log_end_offset == 0
        await until(supervising, lambda: first.log.log_end_offset == 10)
        assert supervising.failures == {"following flights-0": 3}

    supervised(scenario)


class OddLink:
    """Raises at the first two questions, answers the next."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    async def ask(self, request: Request, version: int) -> Response:
        self.asked.append(request)
        if len(self.asked) <= 2:
            odd()
        return UpdateMetadataResponse(error_code=0)

    def close(self) -> None:
        """Do nothing: nothing is open."""


def test_what_the_controller_sends_arrives_in_order_after_an_error() -> None:
    async def scenario(supervising: Supervision) -> None:
        link = OddLink()
        local = 0, cast("Any", None)
        channels = ControlChannels(local, lambda _: link, lambda _: True, supervising)
        first, second = news(), news()
        answers = [channels.send(1, first), channels.send(1, second)]
        await asyncio.gather(*answers)
        assert link.asked == [first, first, first, second]
        assert supervising.failures == {"control requests to broker 1": 2}

    supervised(scenario)


class FlakyLink:
    """Fails now for one reason, now for another, then answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, request: Request, version: int) -> Response:
        self.asked += 1
        if self.asked <= 6:
            raise LinkError("refused" if self.asked % 2 else "timed out")
        return UpdateMetadataResponse(error_code=0)

    def close(self) -> None:
        """Do nothing: nothing is open."""


def test_a_broker_that_does_not_answer_the_controller_is_logged_once_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "broker.cluster.control_channels")

    async def scenario() -> None:
        supervising = supervision()
        channels = ControlChannels(
            (0, cast("Any", None)), lambda _: FlakyLink(), lambda _: True, supervising
        )
        await channels.send(1, news())
        await end(supervising)

    run_in_virtual_time(scenario())
    assert [one.getMessage() for one in caplog.records] == [
        "UpdateMetadataRequest to broker 1 failed, retrying: refused",
        "UpdateMetadataRequest to broker 1 is answered after 6 failures",
    ]


def compactable(directory: Path) -> tuple[Any, list[Log]]:
    """Two logs in which one key is written again and again."""
    logs = open_directories(directory)
    logs.load(lambda _: TopicConfig())
    config = dataclasses.replace(
        SMALL, cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01
    )
    made = [logs.create(name, 0, TOPIC_ID, config, NOW_MS) for name in ("a", "b")]
    for log in made:
        for number in range(100):
            append(log, keyed([(b"key", b"%d" % number)]))
    return logs, made


@pytest.mark.process
def test_a_log_that_cannot_be_looked_at_keeps_no_other_from_being_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, (first, second) = compactable(tmp_path)

    def assess(log: Log, now_ms: int) -> Any:
        return odd() if log is first else choice.assess(log, now_ms)

    monkeypatch.setattr(log_cleaner, "assess", assess)

    async def scenario(supervising: Supervision) -> None:
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(SystemClock(), timers, supervising.spawn, one_step_at_a_time)
        with ThreadPoolExecutor(1) as executor:
            config = BrokerConfig(log_cleaner_backoff_ms=1)
            cleaner = LogCleaner(config, logs, loop, executor, supervising)
            cleaner.start()
            await until(supervising, lambda: cleaner.counts.cleanings == 1)
            assert second.cleaned_offset > 0
            assert supervising.failures == {"log cleaning": 1}
            await end(supervising)

    supervised(scenario)
    logs.close()


@pytest.mark.process
def test_a_cleaner_goes_on_after_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, _ = compactable(tmp_path)
    choose = LogCleaner._choose
    failures = [0]

    async def fail_at_first(cleaner: LogCleaner) -> Any:
        if len(failures) < 3:
            failures.append(0)
            odd()
        return await choose(cleaner)

    monkeypatch.setattr(LogCleaner, "_choose", fail_at_first)

    async def scenario(supervising: Supervision) -> None:
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(SystemClock(), timers, supervising.spawn, one_step_at_a_time)
        with ThreadPoolExecutor(1) as executor:
            cleaner = LogCleaner(BrokerConfig(), logs, loop, executor, supervising)
            cleaner.start()
            await until(supervising, lambda: cleaner.counts.cleanings == 2)
            assert supervising.failures == {"log cleaner 0": 2}
            await end(supervising)

    supervised(scenario)
    logs.close()


def test_a_listener_to_metadata_that_raises_keeps_nobody_else_waiting() -> None:
    async def scenario() -> None:
        cache = MetadataCache()
        noted: list[str] = []
        cache.on_failure = lambda name, _: noted.append(name)
        heard: list[UpdateMetadataRequest] = []
        cache.on_update(odd)
        cache.on_update(heard.append)
        is_spoilt = [False]

        def look() -> bool:
            return odd() if is_spoilt[0] else False

        loop = asyncio.get_running_loop()
        spoilt = loop.create_task(cache.wait_until(look))
        waiting = loop.create_task(cache.wait_until(lambda: bool(heard)))
        await asyncio.sleep(0)  # noqa: TID251

        is_spoilt[0] = True

        cache.update(news())

        async with asyncio.timeout(SECONDS):
            await waiting
            with pytest.raises(ValueError, match="odd"):
                await spoilt
        assert len(heard) == len(noted) == 1

    asyncio.run(scenario())


def test_a_configuration_change_that_cannot_be_applied_holds_up_no_later_one() -> None:
    async def scenario(supervising: Supervision) -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.connect()
        await create_skeleton(store)
        configs = TopicConfigs(store, TopicConfig(), supervising.keep)
        brokers = BrokerConfigs(BrokerConfig(broker_id=1), configs.dynamic)
        await configs.start()
        await brokers.load(store)
        brokers.on_change(odd)
        await write_config(store, "brokers", "1", {"log.cleaner.threads": "2"})
        await write_config(store, "topics", "orders", {"segment.bytes": "5000000"})
        await until(supervising, lambda: configs.topic_config("orders").segment_bytes == 5_000_000)

    supervised(scenario)


def test_metrics_are_served_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "PAUSE_SECONDS", 0)
    served = MetricsEndpoint("127.0.0.1", 0)
    server = served._endpoint._server
    handle = server.handle_request
    errors = [OSError(24, "Too many open files"), ValueError("odd")]

    def fail_at_first() -> None:
        if errors:
            raise errors.pop()
        handle()

    monkeypatch.setattr(server, "handle_request", fail_at_first)
    served._endpoint.serve(served._answer)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    connection.request("GET", "/nowhere")
    assert connection.getresponse().status == 404
    connection.close()
    served.close()
