"""All groups of a run: what they read, who is in them, and whether they are well in the end."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from broker.coordinators.internal_topics import GROUP_KEY, SHARE_KEY
from broker.handlers.brokers.config_resources import GROUP
from broker.network.links import LinkError
from controller.features.feature_znode import encode_levels
from controller.features.levels import NEWEST
from controller.topics.topic_names import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from controller.znodes import FEATURE
from coordinator.groups.group import ClassicGroup
from coordinator.groups.states import GroupState
from protocol.messages.configs import IncrementalAlterConfigsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.simulation.checks.owners import Owners
from tests.simulation.checks.refusals import report
from tests.simulation.checks.share_deliveries import ShareDeliveries
from tests.simulation.checks.watchman import Violation
from tests.simulation.clients.client import RETRY_SECONDS, Client
from tests.simulation.clients.producers import KINDS, LENGTHS, Producer
from tests.simulation.groups.classic import ClassicMember
from tests.simulation.groups.consumer import ConsumerMember
from tests.simulation.groups.member import FIND_VERSION, PARTITIONS, TOPIC
from tests.simulation.groups.population import Population
from tests.simulation.groups.share import ShareMember
from tests.simulation.groups.streams import StreamsMember

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from coordinator.shard import GroupShard
    from tests.simulation.checks.watchman import Watchman
    from tests.simulation.clients.values import Sent
    from tests.simulation.cluster import Machine, SimulatedCluster
    from tests.simulation.groups.member import Traveller

    Begin = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

LOCK_MS: Final = 1500
OWNING: Final = {
    "consumers": (ConsumerMember,),
    "classics": (ClassicMember,),
    "streams": (StreamsMember,),
    "mixed": (ConsumerMember, ClassicMember),
}
"""Kinds of members, by group."""
SHARES: Final = "shares"
INTERNAL: Final = 2
"""Partitions of each internal topic."""
WORK: Final = [(TOPIC, index) for index in range(PARTITIONS)]
STATE: Final = [
    (topic, index)
    for topic in (GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC)
    for index in range(INTERNAL)
]
FEED_SECONDS: Final = 0.1


def group_keys(draws: Random) -> dict[str, int]:
    """Return broker keys with timeouts of sessions and locks as short as faults are."""
    return {
        "group_initial_rebalance_delay_ms": 200,
        "group_min_session_timeout_ms": 1000,
        "group_consumer_min_session_timeout_ms": 1000,
        "group_consumer_session_timeout_ms": 3000,
        "group_consumer_min_heartbeat_interval_ms": 100,
        "group_consumer_heartbeat_interval_ms": 400,
        "group_consumer_assignment_interval_ms": draws.choice((0, 1000)),
        "group_streams_min_session_timeout_ms": 1000,
        "group_streams_session_timeout_ms": 3000,
        "group_streams_min_heartbeat_interval_ms": 100,
        "group_streams_heartbeat_interval_ms": 400,
        "group_streams_assignment_interval_ms": draws.choice((0, 1000)),
        "group_streams_initial_rebalance_delay_ms": draws.choice((0, 500)),
        "group_streams_num_standby_replicas": draws.choice((0, 1)),
        "group_share_min_session_timeout_ms": 1000,
        "group_share_session_timeout_ms": 3000,
        "group_share_min_heartbeat_interval_ms": 100,
        "group_share_heartbeat_interval_ms": 400,
        "group_share_assignment_interval_ms": draws.choice((0, 1000)),
        "group_share_min_record_lock_duration_ms": 1000,
        "group_share_record_lock_duration_ms": LOCK_MS,
        "group_share_delivery_count_limit": draws.choice((2, 3, 5)),
        "share_coordinator_state_topic_num_partitions": INTERNAL,
        "share_coordinator_state_topic_replication_factor": 3,
        "share_coordinator_snapshot_update_records_per_snapshot": draws.choice((2, 20)),
        "share_coordinator_state_topic_prune_interval_ms": draws.choice((1000, 300_000)),
        "share_coordinator_cold_partition_snapshot_interval_ms": draws.choice((2000, 300_000)),
    }


class GroupWorkload:
    """Groups of all kinds, which read one topic."""

    def __init__(
        self, cluster: SimulatedCluster, watchman: Watchman, sent: Sent, draws: Random
    ) -> None:
        self._cluster = cluster
        self._client = Client(cluster, "administrator")
        limit = cluster.keys["group_share_delivery_count_limit"]
        self.deliveries = ShareDeliveries(cluster, watchman, SHARES, (limit, LOCK_MS))
        self.owners = {
            group_id: Owners(group_id, may_begin_again=len(kinds) > 1)
            for group_id, kinds in OWNING.items()
        }
        self.feed = Producer(cluster, "feed", KINDS[0], sent)
        self.feed.pause_seconds, self.feed.lengths = FEED_SECONDS, LENGTHS[0]
        self._watchman = watchman
        self._told: dict[str, Callable[[], int]] = {
            group_id: partial(getattr, owners, "newest_epoch")
            for group_id, owners in self.owners.items()
            if len(OWNING[group_id]) == 1
        }
        """The highest epoch that a member was told, by group whose epochs never begin again."""
        self._told[SHARES] = partial(getattr, self.deliveries, "newest_epoch")
        members = Random(draws.random())

        def owning(group_id: str) -> Callable[[str], Traveller]:
            kinds, owners = OWNING[group_id], self.owners[group_id]
            return lambda name: members.choice(kinds)(cluster, name, owners, sent)

        def share(name: str) -> Traveller:
            return ShareMember(cluster, name, self.deliveries, sent)

        makers = {**{group_id: owning(group_id) for group_id in OWNING}, SHARES: share}
        chosen = draws.sample(sorted(makers), draws.randint(2, 3))
        self.populations = [
            Population(cluster, group_id, makers[group_id], draws.randint(1, 3))
            for group_id in sorted(chosen)
        ]

    def look(self, machine: Machine) -> None:
        """After a step of a broker: who coordinates a group knows what its members were told."""
        services = None if machine.broker is None else machine.broker.services
        if services is None:
            return
        broker, now = (machine.number, machine.lives), self._cluster.loop.now
        for runtime in services.groups.active_shards():
            at = GROUP_METADATA_TOPIC, runtime.partition.index
            if not self._watchman.leads_since(at, broker, now):
                continue  # it has a successor, and does not know
            for group_id, told in self._told.items():
                group = _group(runtime.groups, group_id)
                if group is not None and (epoch := _epoch(group)) < told():
                    report(
                        f"{machine.name} coordinates group {group_id} in epoch {epoch}, "
                        f"after a member was told {told()}"
                    )

    async def finalise_features(self) -> None:
        """As an administrator does once all brokers are ours; before the first of them starts."""
        store = self._cluster.zookeeper.ensemble.connect()
        await store.create(FEATURE, encode_levels(NEWEST))

    async def prepare(self) -> None:
        """Have all topics there, those of coordinators too, and share groups begin at 0."""
        await self._client.create_topic(TOPIC, PARTITIONS, 3)
        for key_type, key in ((GROUP_KEY, SHARES), (SHARE_KEY, f"{SHARES}:{'A' * 22}:0")):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            await self._ask_until_done(
                request,
                FIND_VERSION if key_type == GROUP_KEY else 6,
                lambda response: not response.coordinators[0].error_code,
            )
        kind = IncrementalAlterConfigsRequest.Resource
        config = kind.Config(name="share.auto.offset.reset", config_operation=0, value="earliest")
        alter = IncrementalAlterConfigsRequest(
            resources=[kind(resource_type=GROUP, resource_name=SHARES, configs=[config])],
            validate_only=False,
        )
        await self._ask_until_done(alter, 1, lambda response: not response.responses[0].error_code)

    async def _ask_until_done(
        self, request: Any, version: int, is_done: Callable[[Any], bool]
    ) -> None:
        while True:
            try:
                broker_id = self._client.random.randrange(len(self._cluster.machines))
                if is_done(await self._client.ask(broker_id, request, version)):
                    return
            except LinkError:
                pass
            await asyncio.sleep(RETRY_SECONDS)

    def begin(self, begin: Begin) -> list[asyncio.Task[None]]:
        """Have the populations live; they do until they are cancelled."""
        return [begin(population.run()) for population in self.populations]

    def calm(self) -> None:
        """Let whoever is there finish."""
        self.feed.is_done = True
        for population in self.populations:
            population.calm()

    def unsettled(self) -> str:
        """Name a group that is not stable or has unfinished records; empty if there is none."""
        for population in self.populations:
            group_id = population.group_id
            if len(population.present) < 1:
                return f"group {group_id} has no member yet"
            shard = self._shard(group_id)
            if shard is None:
                return f"group {group_id} has no coordinator"
            problem = _instability(shard, group_id, len(population.present))
            if not problem:
                problem = self._unread(group_id)
            if problem:
                waits = "; ".join(
                    f"{each.name} waits for {each.waits_for()}"
                    for each in population.present.values()
                )
                return f"group {group_id} {problem}; {waits}"
        return ""

    def audit(self) -> None:
        """No record was lost; raises Violation."""
        for population in self.populations:
            group_id = population.group_id
            for _, index in WORK:
                end = self._end(index)
                if group_id == SHARES:
                    lost = self.deliveries.lost(index, end)
                else:
                    lost = self.owners[group_id].lost(index, end)
                if lost:
                    raise Violation(f"group {group_id} never got {TOPIC}-{index} at {lost}")

    def _unread(self, group_id: str) -> str:
        for _, index in WORK:
            end = self._end(index)
            if group_id == SHARES:
                done = self._share_start(index)
            else:
                done = self.owners[group_id].committed.get(index, 0)
            if done < end:
                return f"has finished {TOPIC}-{index} to {done}, not {end}"
        return ""

    def _end(self, index: int) -> int:
        for _, partition in self._cluster.partitions():
            if (partition.topic, partition.index, partition.is_leader) == (TOPIC, index, True):
                return partition.log.log_end_offset
        raise Violation(f"{TOPIC}-{index} has no leader")

    def _share_start(self, index: int) -> int:
        """Before which the share group is done with everything."""
        starts = [
            led._records.ranges.start
            for _, broker in self._cluster.brokers()
            if broker.services is not None
            for key, led in broker.services.share_partitions._led.items()
            if key.group_id == SHARES and led.partition.index == index and led.partition.is_leader
        ]
        return max(starts, default=0)

    def _shard(self, group_id: str) -> GroupShard | None:
        for _, broker in self._cluster.brokers():
            if broker.services is None:
                continue
            groups = broker.services.groups
            index = groups.partition_for(group_id)
            for shard in groups.active_shards():
                if shard.partition.index == index and shard.partition.is_leader:
                    return shard.groups
        return None


def _instability(shard: GroupShard, group_id: str, size: int) -> str:
    """Describe why a group is not stable with so many members; empty if it is."""
    group = _group(shard, group_id)
    if group is None:
        return "does not exist"
    is_stable = group.state is GroupState.STABLE or group.state.value == "Stable"
    if not is_stable or len(group.members) != size:
        return f"is {group.state} with members {sorted(group.members)}, of which {size} live"
    return ""


def _group(shard: GroupShard, group_id: str) -> Any:
    """A group of whatever kind; None if there is none."""
    for kind in (shard.consumers, shard.streams, shard.shares):
        group: Any = kind.groups.find(group_id)
        if group is not None:
            return group
    return shard.find(group_id)


def _epoch(group: Any) -> int:
    """The epoch of a group, or its generation."""
    epoch: int = group.generation if isinstance(group, ClassicGroup) else group.epoch
    return epoch
