"""Coordinators whose log cannot be replayed at once: they come up once it can be."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from broker.coordinators.group_shard_runtime import GroupShardRuntime
from broker.runtime.supervision import FIRST_PAUSE_MS
from coordinator.shard import GroupShard
from protocol.errors import ErrorCode
from tests.broker.coordinators.group_broker import GROUP, GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_forgotten, until_loaded
from tests.broker.coordinators.test_groups import commit, committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.partition import Partition

SECONDS = 60
OFFSETS_TOPIC = "__consumer_offsets"


class Failures:
    """Error log stand-in that raises some errors first."""

    def __init__(self, method: Callable[..., Any], times: int) -> None:
        self._method = method
        self.left = times
        self.noted: Counter[str] = Counter()

    def note(self, name: str, error: BaseException, kind: str = "") -> None:
        self.noted[kind] += 1

    def replacement(self) -> Callable[..., Any]:
        def fail_at_first(*arguments: Any) -> Any:
            if self.left:
                self.left -= 1
                raise ValueError("odd")
            return self._method(*arguments)

        return fail_at_first


def led(broker: GroupBroker) -> Partition:
    partition = broker.replicas.partition(OFFSETS_TOPIC, broker.groups.partition_for(GROUP))
    assert partition is not None
    return partition


def lead_anew(broker: GroupBroker) -> None:
    broker.groups.partition_changed(led(broker), False)
    broker.groups.partition_changed(led(broker), True)


def damage(path: Path) -> bytes:
    """Put zeros in the place of a file's content, which is returned."""
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    return sound


def repair(path: Path, sound: bytes) -> None:
    path.write_bytes(sound)


class RecordedTimers:
    """Keeps what is to be done later."""

    def __init__(self) -> None:
        self.scheduled: list[Callable[[], None]] = []

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.scheduled.append(callback)


async def until_served(broker: GroupBroker, member_id: str) -> None:
    async with asyncio.timeout(SECONDS):
        while (await broker.sync(member_id)).error_code != ErrorCode.NONE:
            await broker.timers.sleep(FIRST_PAUSE_MS)


async def until_active(broker: GroupBroker) -> None:
    index = broker.groups.partition_for(GROUP)
    async with asyncio.timeout(SECONDS):
        while index not in {shard.partition.index for shard in broker.groups.active_shards()}:
            await broker.timers.sleep(FIRST_PAUSE_MS)


@pytest.mark.parametrize(
    ("owner", "method"),
    [(GroupShard, "replay"), (GroupShardRuntime, "loaded"), (GroupShardRuntime, "activate")],
)
def test_a_shard_that_could_not_be_loaded_is_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        failures = Failures(getattr(owner, method), times=2)
        monkeypatch.setattr(broker.groups, "_note", failures.note)
        monkeypatch.setattr(owner, method, failures.replacement())

        lead_anew(broker)

        await until_served(broker, member_id)
        assert failures.left == 0
        assert failures.noted == {"coordinator loading": 2}
        assert not broker.groups.is_loading

    run_group_broker(tmp_path, scenario)


@pytest.mark.parametrize("moment", ["while it loads", "once it has failed"])
def test_a_topic_that_is_deleted_before_a_shard_can_be_loaded_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic("flights")
        await broker.find_coordinator()
        assert await commit(broker, 700, "flights") == ErrorCode.NONE
        failures = Failures(GroupShardRuntime.loaded, times=2)
        monkeypatch.setattr(broker.groups, "_note", failures.note)
        monkeypatch.setattr(GroupShardRuntime, "loaded", failures.replacement())

        lead_anew(broker)
        if moment == "once it has failed":
            await until_loaded(broker.groups)
            assert failures.left == 1
        broker.groups.topics_deleted({"flights"})
        await until_active(broker)
        await until_forgotten()

        assert failures.left == 0
        assert await committed(broker, "flights") == -1

    run_group_broker(tmp_path, scenario)


def test_a_shard_without_records_that_could_not_begin_begins_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        failures = Failures(GroupShardRuntime.activate, times=1)
        monkeypatch.setattr(broker.groups, "_note", failures.note)
        monkeypatch.setattr(GroupShardRuntime, "activate", failures.replacement())

        lead_anew(broker)

        async with asyncio.timeout(SECONDS):
            while (await broker.join()).error_code != ErrorCode.MEMBER_ID_REQUIRED:
                await broker.timers.sleep(FIRST_PAUSE_MS)
        assert failures.noted == {"coordinator loading": 1}

    run_group_broker(tmp_path, scenario)


def test_a_shard_that_cannot_be_unloaded_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(_: GroupShardRuntime) -> NoReturn:
        raise ValueError("odd")

    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        with monkeypatch.context() as patch:
            patch.setattr(GroupShardRuntime, "unloaded", odd)
            lead_anew(broker)
        await until_served(broker, member_id)

    run_group_broker(tmp_path, scenario)


def test_a_damaged_log_is_named_once_and_not_read_again_and_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.find_coordinator()
        member_id = await broker.stable_group()
        log = led(broker).log
        path = Path(log.segments.active.path)
        sound = damage(path)
        timers = RecordedTimers()
        monkeypatch.setattr(broker.groups, "timers", timers)

        lead_anew(broker)
        async with asyncio.timeout(SECONDS):
            await until_loaded(broker.groups)

        told = [one for one in caplog.records if "no coordinator until" in one.message]
        assert len(told) == 1
        assert str(path) in told[0].message
        assert not timers.scheduled
        assert (await broker.sync(member_id)).error_code == ErrorCode.NOT_COORDINATOR
        repair(path, sound)
        lead_anew(broker)
        await until_served(broker, member_id)

    run_group_broker(tmp_path, scenario)
