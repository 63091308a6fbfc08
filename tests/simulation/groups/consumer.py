"""A consumer of the newer protocol (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.errors import ErrorCode
from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.simulation.groups.member import FENCED, REBALANCE_TIMEOUT_MS, TOPIC, Member

if TYPE_CHECKING:
    from uuid import UUID

    from tests.simulation.checks.owners import Owners
    from tests.simulation.clients.values import Sent
    from tests.simulation.cluster import SimulatedCluster

VERSION = 1
LEAVING = -1


class ConsumerMember(Member):
    """Reconciles: it gives up what it is no longer told, then says so with its next heartbeat."""

    def __init__(self, cluster: SimulatedCluster, name: str, owners: Owners, sent: Sent) -> None:
        super().__init__(cluster, name, owners, sent)
        self.member_id = name
        self._topic_id: UUID | None = None
        self._must_commit = self.random.random() < 0.7
        """It commits the partitions that it gives up, as most do."""

    async def heartbeat(self) -> None:
        joins = self.epoch == 0
        said: dict[str, Any] = {}
        if joins:
            said = {
                "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
                "subscribed_topic_names": [TOPIC],
                "topic_partitions": [],
            }
        elif self._topic_id is not None:
            kind = TopicPartitions
            owned = [kind(topic_id=self._topic_id, partitions=list(self.positions))]
            said = {"topic_partitions": owned if self.positions else []}
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch, **said
        )
        response = await self.ask(self.coordinator, request, VERSION)
        code = ErrorCode(response.error_code)
        if code in FENCED:
            self.abandon()
        elif code is not ErrorCode.NONE:
            self.note(code, "ConsumerGroupHeartbeat")
        else:
            self.owners.told_epoch(self.name, self.epoch, response.member_epoch)
            await self._take_assignment(response)

    async def _take_assignment(self, response: Any) -> None:
        told = set(self.positions)
        if response.assignment is not None:
            told = set()
            for each in response.assignment.topic_partitions:
                self._topic_id = each.topic_id
                told |= set(each.partitions)
        given_up = {each: at for each, at in self.positions.items() if each not in told}
        if given_up and self._must_commit:
            # In the epoch before: that of the answer is not one in which it has these.
            await self.commit(given_up)
            if not self.epoch:
                return
        self.take(response.member_epoch, told)

    async def leave(self) -> None:
        """Say so; raises LinkError."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=LEAVING
        )
        if await self.find():
            await self.commit(self.positions)
            await self.ask(self.coordinator, request, VERSION)
