"""Base of the members of all groups in which partitions are owned.

A member heartbeats, reads its assigned partitions, and commits its positions. It trusts the last
answer: while it sleeps, or gets no answers, others may have taken over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.network.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_commit import OffsetCommitRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from tests.simulation.checks.refusals import report
from tests.simulation.clients.client import RETRY_SECONDS, Client
from tests.simulation.clients.readers import fetch_request, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.checks.owners import Owners
    from tests.simulation.clients.values import Sent
    from tests.simulation.cluster import SimulatedCluster

TOPIC: Final = "work"
PARTITIONS: Final = 3
HEARTBEAT_SECONDS: Final = 0.4
REBALANCE_TIMEOUT_MS: Final = 3000
FETCH_VERSION: Final = 11
FIND_VERSION: Final = 4
NO_BROKER: Final = -1

ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Another broker has to be asked, or the same one later."""
PASSING: Final = ELSEWHERE | {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""Somebody else has, or will have, what the member owned."""


class Traveller(Client):
    """A client of a group: it finds the coordinator, and ends when it is told to."""

    def __init__(self, cluster: SimulatedCluster, name: str, group_id: str) -> None:
        super().__init__(cluster, name)
        self.group_id = group_id
        self.must_end = False
        self.sleeps_until = 0.0
        self.coordinator = NO_BROKER
        self._beats_at = 0.0

    async def run(self) -> None:
        """Be a member until it is to end."""
        while not self.must_end:
            if self.now < self.sleeps_until:
                await asyncio.sleep(self.sleeps_until - self.now)
            try:
                await self.act()
            except LinkError:
                self.coordinator = NO_BROKER
            await asyncio.sleep(self.random.uniform(0.01, RETRY_SECONDS))

    async def act(self) -> None:
        """Do whatever is next; raises LinkError."""
        raise NotImplementedError

    async def leave(self) -> None:
        """Leave the group in order; raises LinkError."""
        raise NotImplementedError

    def die(self) -> None:
        """End without a word; connections are reset, or closed."""
        self.must_end = True
        for link in self._links.values():
            link.hang_up(is_reset=self.random.random() < 0.5)

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return self.cluster.loop.now

    @property
    def is_beat_due(self) -> bool:
        """Return whether a heartbeat is due; asked once for each."""
        if self.now < self._beats_at:
            return False
        self._beats_at = self.now + HEARTBEAT_SECONDS
        return True

    async def find(self) -> bool:
        """Return whether the coordinator is known; else look it up at a random broker."""
        if self.coordinator != NO_BROKER:
            return True
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])
        broker_id = self.random.randrange(len(self.cluster.machines))
        (found,) = (await self.ask(broker_id, request, FIND_VERSION)).coordinators
        if not found.error_code:
            self.coordinator = found.node_id
        return self.coordinator != NO_BROKER

    def note(self, code: ErrorCode, what: str) -> None:
        """Take an error that may pass; report one that may not be."""
        if code in ELSEWHERE:
            self.coordinator = NO_BROKER
        elif code not in PASSING:
            report(f"{self.name}: {what} answers {code.name}")


class Member(Traveller):
    """Owns partitions of the topic `work`."""

    commit_version = 9
    fetch_version = 9

    def __init__(self, cluster: SimulatedCluster, name: str, owners: Owners, sent: Sent) -> None:
        super().__init__(cluster, name, owners.group_id)
        self.owners = owners
        self.member_id = ""
        self.epoch = 0
        self.positions: dict[int, int | None] = {}
        """By partition that it owns; None until it knows where to begin."""
        self._sent = sent
        self._commits = self.random.choice((0.2, 0.5, 1.0))

    async def act(self) -> None:
        if not await self.find():
            return
        if self.is_beat_due:
            await self.heartbeat()
        for partition in list(self.positions):
            if partition in self.positions:
                await self._process(partition)
        if self.positions and self.random.random() < self._commits:
            await self.commit(self.positions)

    async def heartbeat(self) -> None:
        """Tell that it lives, and hear what it owns; raises LinkError."""
        raise NotImplementedError

    # What it owns

    def take(self, epoch: int, partitions: Iterable[int]) -> None:
        """It owns these and no others, in this epoch."""
        self.epoch = epoch
        now_owned = set(partitions)
        self.owners.grant(self.name, epoch, now_owned)
        self.positions = {each: self.positions.get(each) for each in sorted(now_owned)}

    def abandon(self) -> None:
        """It owns nothing any more, and has to join again."""
        self.epoch = 0
        self.positions = {}
        self._beats_at = 0.0

    # Positions

    async def _process(self, partition: int) -> None:
        position = self.positions[partition]
        if position is None:
            await self._find_position(partition)
            return
        at = TOPIC, partition
        leader = self.leaders.get(at, NO_BROKER)
        if leader < 0:
            await self.refresh(TOPIC)
            return
        request = fetch_request(at, position, 50, self.random.choice((1, 5000, 100_000)))
        request.topics[0].partitions[0].current_leader_epoch = self.leader_epochs[at]
        try:
            response = await self.ask(leader, request, FETCH_VERSION)
        except LinkError:
            await self.refresh(TOPIC)
            return
        (told,) = response.responses[0].partitions
        if told.error_code:
            await self.refresh(TOPIC)
        for offset, value in records_of(response, self.name):
            if offset >= position:
                self._sent.recognise(at, value, f"{self.name} at {offset}")
                self.owners.processed[partition].add(offset)
                position = offset + 1
        self.positions[partition] = position

    async def _find_position(self, partition: int) -> None:
        kind = OffsetFetchRequest.Group
        group = kind(
            group_id=self.group_id,
            topics=[kind.Topic(name=TOPIC, partition_indexes=[partition])],
        )
        if self.fetch_version >= 9:
            group.member_id, group.member_epoch = self.member_id, self.epoch
        floor = self.owners.committed.get(partition, -1)
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        response = await self.ask(self.coordinator, request, self.fetch_version)
        (answered,) = response.groups
        code = ErrorCode(answered.error_code)
        if code in FENCED:
            if code is not ErrorCode.STALE_MEMBER_EPOCH:
                self.abandon()
            return
        if code is not ErrorCode.NONE:
            self.note(code, "OffsetFetch")
            return
        (told,) = answered.topics[0].partitions
        if told.error_code:
            self.note(ErrorCode(told.error_code), "OffsetFetch of a partition")
            return
        self.owners.fetched(self.name, partition, told.committed_offset, floor)
        self.positions[partition] = max(told.committed_offset, 0)

    async def commit(self, positions: dict[int, int | None]) -> None:
        """Commit how far it came; raises LinkError."""
        known = {each: at for each, at in positions.items() if at is not None}
        if not known or self.coordinator == NO_BROKER:
            return
        kind = OffsetCommitRequest.Topic
        for partition, position in known.items():
            self.owners.attempt(partition, position)
        was_superseded = {each: self.owners.is_superseded(self.name, each) for each in known}
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            topics=[
                kind(
                    name=TOPIC,
                    partitions=[
                        kind.Partition(
                            partition_index=each, committed_offset=at, committed_metadata=""
                        )
                        for each, at in known.items()
                    ],
                )
            ],
        )
        response = await self.ask(self.coordinator, request, self.commit_version)
        codes = set()
        for told in response.topics[0].partitions:
            code = ErrorCode(told.error_code)
            codes.add(code)
            if code is ErrorCode.NONE:
                index = told.partition_index
                self.owners.accepted(
                    self.name, index, known[index], was_superseded=was_superseded[index]
                )
        self._take_refusals(codes - {ErrorCode.NONE})

    def _take_refusals(self, codes: set[ErrorCode]) -> None:
        """A commit was refused."""
        for code in codes:
            if code is ErrorCode.STALE_MEMBER_EPOCH or code is ErrorCode.REBALANCE_IN_PROGRESS:
                self._beats_at = 0.0
            elif code in FENCED:
                self.abandon()
            else:
                self.note(code, "OffsetCommit")
