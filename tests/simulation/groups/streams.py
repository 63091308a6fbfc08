"""A member of a streams group (KIP-1071): each task reads one partition, and has a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest, StreamsGroupTaskIds
from tests.simulation.groups.member import FENCED, REBALANCE_TIMEOUT_MS, TOPIC, Member
from tests.support.topologies import Topology, internal, part

if TYPE_CHECKING:
    from tests.simulation.checks.owners import Owners
    from tests.simulation.clients.values import Sent
    from tests.simulation.cluster import SimulatedCluster

VERSION = 0
LEAVING = -1
SUBTOPOLOGY = "0"
PROCESSES = "p", "q"


def topology_of(group_id: str) -> Topology:
    """One subtopology with a changelog."""
    changelogs = [internal(f"{group_id}-store-changelog")]
    return Topology(epoch=0, subtopologies=[part(SUBTOPOLOGY, [TOPIC], changelogs=changelogs)])


class StreamsMember(Member):
    """Runs its active tasks; standby and warm-up tasks it only has."""

    def __init__(self, cluster: SimulatedCluster, name: str, owners: Owners, sent: Sent) -> None:
        super().__init__(cluster, name, owners, sent)
        self.member_id = name
        self._process_id = f"{self.random.choice(PROCESSES)}"
        self._copies: dict[str, list[StreamsGroupTaskIds]] = {}

    async def heartbeat(self) -> None:
        joins = self.epoch == 0
        tasks = [StreamsGroupTaskIds(subtopology_id=SUBTOPOLOGY, partitions=list(self.positions))]
        said: dict[str, Any] = {
            "active_tasks": tasks if self.positions else [],
            "standby_tasks": self._copies.get("standby", []),
            "warmup_tasks": self._copies.get("warmup", []),
        }
        if joins:
            said |= {
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "topology": topology_of(self.group_id),
                "process_id": self._process_id,
            }
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=-1,
            **said,
        )
        response = await self.ask(self.coordinator, request, VERSION)
        code = ErrorCode(response.error_code)
        if code in FENCED:
            self.abandon()
        elif code is not ErrorCode.NONE:
            self.note(code, "StreamsGroupHeartbeat")
        else:
            self.owners.told_epoch(self.name, self.epoch, response.member_epoch)
            await self._take_tasks(response)

    def abandon(self) -> None:
        super().abandon()
        self._copies = {}

    async def _take_tasks(self, response: Any) -> None:
        told = set(self.positions)
        if response.active_tasks is not None:
            told = {each for tasks in response.active_tasks for each in tasks.partitions}
            self._copies = {
                "standby": list(response.standby_tasks or ()),
                "warmup": list(response.warmup_tasks or ()),
            }
        given_up = {each: at for each, at in self.positions.items() if each not in told}
        if given_up:
            await self.commit(given_up)
            if not self.epoch:
                return
        self.take(response.member_epoch, told)

    async def leave(self) -> None:
        """Say so; raises LinkError."""
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=LEAVING,
            endpoint_information_epoch=-1,
        )
        if await self.find():
            await self.commit(self.positions)
            await self.ask(self.coordinator, request, VERSION)
