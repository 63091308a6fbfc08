"""Share state stored by its coordinator: this broker, or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from broker.coordinators.internal_topics import SHARE_KEY
from broker.coordinators.share_state.cluster_store import ClusterShareState, Reach
from broker.runtime.deferred import awaited
from coordinator.share_state.state import (
    NO_SUMMARY,
    SharePartition,
    StateBatch,
    StateChange,
    StateSummary,
    StoredState,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.share_group_state import WriteShareGroupStateRequest
from tests.broker.coordinators.group_broker import GroupBroker, run_group_broker
from tests.broker.coordinators.loading import until_forgotten

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from protocol.schema import Request, Response

TOPIC = "t"
KEYS = {"share_coordinator_state_topic_num_partitions": 2}
OTHER = 7


def key(broker: GroupBroker, partition: int = 0) -> SharePartition:
    return SharePartition("readers", broker.metadata.topic_id(TOPIC), partition)


def change(*batches: tuple[int, int, int, int], start: int = -1) -> StateChange:
    return StateChange(1, 0, start, 0, tuple(StateBatch(*each) for each in batches))


class InstantTimers:
    """Timers that are over at once; they keep how long they should have taken."""

    def __init__(self, broker: GroupBroker) -> None:
        self._timers = broker.timers
        self.pauses: list[float] = []

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> Any:
        self.pauses.append(delay_ms)
        return self._timers.schedule(0, callback)

    def soon(self, callback: Callable[[], object]) -> None:
        self._timers.soon(callback)


class Elsewhere:
    """Internal topics that another broker leads; this broker's own answer for it."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker
        self._topics = broker.services.internal_topics
        self.lost = 0
        """Requests that get no answer."""
        self.asked: list[Request] = []
        self.when_ready = self._topics.when_ready

    def leader(self, key_type: int, coordinator_key: str) -> int:
        assert self._topics.leader(key_type, coordinator_key) >= 0
        return OTHER

    def ask(
        self,
        where: tuple[int, str],
        request: Request,
        version: int,
        answered: Callable[[Response | None], None],
    ) -> None:
        assert where[0] == OTHER
        self.asked.append(request)
        if self.lost:
            self.lost -= 1
            self._broker.timers.soon(lambda: answered(None))
            return

        async def work() -> None:
            answered(await self._broker.ask(request, version))

        self._broker.spawn(work(), "another broker")


def test_state_is_created_with_its_topic_and_outlives_the_leadership(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        store = broker.services.share_state
        await awaited(store.initialise(key(broker), 1, -1))
        await awaited(store.write(key(broker), change((5, 9, 0, 1), start=5)))
        stored = StoredState(1, 5, (StateBatch(5, 9, 0, 1),))
        assert await awaited(store.read(key(broker), 0)) == stored

        coordinators = broker.services.share_coordinators
        shard = coordinators.shard_for(key(broker).coordinator_key)
        for is_leader in (False, True):
            coordinators.partition_changed(shard.partition, is_leader)
        assert await awaited(store.read(key(broker), 0)) == stored, "asked again until it is loaded"
        await awaited(store.delete(key(broker)))
        assert await awaited(store.read_summary(key(broker))) == NO_SUMMARY

    run_group_broker(tmp_path, scenario, **KEYS)


def test_share_state_on_another_broker_is_read_and_written_with_retries(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        elsewhere: Any = Elsewhere(broker)
        timers: Any = InstantTimers(broker)
        coordinators = broker.services.share_coordinators
        store = ClusterShareState(Reach(0, coordinators, elsewhere, elsewhere, timers, 6000))
        elsewhere.lost = 5
        await awaited(store.initialise(key(broker), 1, 3))
        assert timers.pauses == [200, 400, 800, 1600, 3000]

        await awaited(store.write(key(broker), change((3, 4, 2, 1))))
        assert await awaited(store.read(key(broker), 0)) == StoredState(
            1, 3, (StateBatch(3, 4, 2, 1),)
        )
        assert await awaited(store.read_summary(key(broker))) == StateSummary(1, 0, 3, 0)
        with pytest.raises(ApiError) as fenced:
            await awaited(store.initialise(key(broker), 0, 3))
        assert fenced.value.code is ErrorCode.FENCED_STATE_EPOCH
        await awaited(store.delete(key(broker)))

        elsewhere.lost = 6
        with pytest.raises(ApiError) as lost:
            await awaited(store.delete(key(broker)))
        assert lost.value.code is ErrorCode.NETWORK_EXCEPTION

    run_group_broker(tmp_path, scenario, **KEYS)


def test_changes_keep_their_order_when_one_has_to_be_sent_again(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        elsewhere: Any = Elsewhere(broker)
        timers: Any = InstantTimers(broker)
        coordinators = broker.services.share_coordinators
        store = ClusterShareState(Reach(0, coordinators, elsewhere, elsewhere, timers, 6000))
        await awaited(store.initialise(key(broker), 1, 0))
        elsewhere.lost = 1
        writes = [store.write(key(broker), change(start=start)) for start in (1, 2, 3)]
        for write in writes:
            await awaited(write)
        sent = [each for each in elsewhere.asked if isinstance(each, WriteShareGroupStateRequest)]
        assert [each.topics[0].partitions[0].start_offset for each in sent] == [1, 1, 2, 3]
        assert (await awaited(store.read(key(broker), 0))).start_offset == 3

    run_group_broker(tmp_path, scenario, **KEYS)


def test_share_state_log_is_pruned_up_to_the_latest_snapshots(tmp_path: Path) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        store, coordinators = broker.services.share_state, broker.services.share_coordinators
        for offset in range(6):
            if not offset:
                await awaited(store.initialise(key(broker), 1, 0))
            await awaited(store.write(key(broker), change((offset, offset, 2, 1))))
        shard = coordinators.shard_for(key(broker).coordinator_key)
        log = shard.partition.log
        coordinators.prune()
        assert (log.log_start_offset, log.log_end_offset) == (6, 7)

        broker.clock.ms += 300_000
        await coordinators.snapshot_cold()
        coordinators.prune()
        assert (log.log_start_offset, log.log_end_offset) == (7, 8)

        coordinators.topics_deleted({key(broker).topic_id})
        await until_forgotten()
        assert not shard.share_states.share_partitions

    run_group_broker(
        tmp_path, scenario, share_coordinator_snapshot_update_records_per_snapshot=5, **KEYS
    )


@pytest.mark.parametrize(
    ("version", "text", "code"),
    [
        (6, None, ErrorCode.NONE),
        (6, "readers:t:0", ErrorCode.INVALID_REQUEST),
        (5, None, ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_coordinator_of_a_share_partition_is_found(
    tmp_path: Path, version: int, text: str | None, code: ErrorCode
) -> None:
    async def scenario(broker: GroupBroker) -> None:
        await broker.create_topic(TOPIC)
        wanted = key(broker).coordinator_key if text is None else text
        request = FindCoordinatorRequest(key_type=SHARE_KEY, coordinator_keys=[wanted])
        [found] = (await broker.ask(request, version)).coordinators
        assert (found.error_code, found.key) == (code, wanted)
        assert (found.node_id >= 0) is (code is ErrorCode.NONE)

    run_group_broker(tmp_path, scenario, **KEYS)
