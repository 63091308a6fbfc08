"""Random groups: invariants that hold after every step of clients, clocks and failures.

- no reply is answered twice (the inbox checks), none that is parked belongs to nobody
- a group with members has one leader, who is a member; a group without has none
- generations never fall
- counts kept beside the members agree with them
- what a restart reads back is what was stored: offsets always, generations where they are over
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from coordinator.groups.states import GroupState
from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.group_membership import LeaveGroupRequest
from tests.coordinator.harness import Harness, Inbox

if TYPE_CHECKING:
    from coordinator.groups.group import ClassicGroup
    from coordinator.ports import TimerKey

GROUPS = ("a", "b")
INSTANCES = (None, None, "one", "two")
PROTOCOLS = ({"range": b"1"}, {"range": b"2", "sticky": b"1"}, {"sticky": b"1", "range": b"1"})
STORED = (GroupState.EMPTY, GroupState.STABLE)


class ShardMachine(RuleBasedStateMachine):
    """A shard under random clients."""

    members = Bundle("members")

    @initialize(delay=st.sampled_from([0, 3_000]), size=st.sampled_from([2, 1_000]))
    def start(self, delay: int, size: int) -> None:
        limits = GroupSettings(
            initial_rebalance_delay_ms=delay, max_size=size, offsets_retention_ms=500_000
        )
        self.harness = Harness(limits)
        self.generations: dict[str, int] = {}

    @rule(
        target=members,
        group_id=st.sampled_from(GROUPS),
        instance=st.sampled_from(INSTANCES),
        protocols=st.sampled_from(PROTOCOLS),
        version=st.sampled_from([3, 9]),
    )
    def join_new(
        self, group_id: str, instance: str | None, protocols: dict[str, bytes], version: int
    ) -> object:
        inbox = self.harness.join(
            group_id=group_id, instance=instance, protocols=protocols, version=version
        )
        group = self.harness.shard.find(group_id)
        found = [inbox.response.member_id] if inbox.responses else []
        if group is not None:
            found += [each for each in group.members if group.members[each].joining is inbox]
        return multiple(*((group_id, each, instance) for each in found if each))

    @rule(
        member=members,
        protocols=st.sampled_from(PROTOCOLS),
        session_ms=st.sampled_from([6_000, 30_000]),
    )
    def join_again(
        self, member: tuple[str, str, str | None], protocols: dict[str, bytes], session_ms: int
    ) -> None:
        group_id, member_id, instance = member
        self.harness.join(
            member_id,
            group_id=group_id,
            instance=instance,
            protocols=protocols,
            session_ms=session_ms,
        )

    @rule(member=members)
    def sync(self, member: tuple[str, str, str | None]) -> None:
        group_id, member_id, instance = member
        group = self.harness.shard.find(group_id)
        generation = group.generation if group else 0
        everybody = dict.fromkeys(group.members, b"part") if group else {}
        options = {"group_id": group_id, "group_instance_id": instance}
        self.harness.sync(member_id, generation, everybody, **options)

    @rule(group_id=st.sampled_from(GROUPS))
    def everybody_syncs(self, group_id: str) -> None:
        group = self.harness.shard.find(group_id)
        for member_id in list(group.members) if group else []:
            self.sync((group_id, member_id, None))

    @rule(group_id=st.sampled_from(GROUPS))
    def everybody_rejoins(self, group_id: str) -> None:
        group = self.harness.shard.find(group_id)
        for member_id in [*group.members, *group.pending_members] if group else []:
            self.harness.join(member_id, group_id=group_id)

    @rule(member=consumes(members))
    def leave(self, member: tuple[str, str, str | None]) -> None:
        group_id, member_id, instance = member
        self.harness.leave_members(
            LeaveGroupRequest.Member(member_id=member_id, group_instance_id=instance),
            group_id=group_id,
        )

    @rule(member=members, offset=st.integers(0, 99), partition=st.integers(0, 2))
    def commit(self, member: tuple[str, str, str | None], offset: int, partition: int) -> None:
        group_id, member_id, instance = member
        group = self.harness.shard.find(group_id)
        error = self.harness.commit(
            offset,
            group_id=group_id,
            member_id=member_id,
            instance=instance,
            generation=group.generation if group else 0,
            partition=partition,
        )
        self.check_commit(error, offset, group_id, partition)

    @rule(group_id=st.sampled_from(GROUPS), offset=st.integers(0, 99))
    def commit_as_tool(self, group_id: str, offset: int) -> None:
        error = self.harness.commit(offset, group_id=group_id, partition=5)
        self.check_commit(error, offset, group_id, 5)

    @rule(group_id=st.sampled_from(GROUPS))
    def delete_group(self, group_id: str) -> None:
        code, records = self.harness.shard.handle_delete_group(group_id)
        self.harness.append(records)
        if code is ErrorCode.NONE:
            assert self.harness.shard.find(group_id) is None
            self.generations.pop(group_id, None)

    @rule()
    def clean_up(self) -> None:
        for group_id in list(self.harness.shard.group_ids):
            records = self.harness.shard.expire_offsets(group_id, self.harness.now_ms)
            self.harness.append(records)

    @rule(delay_ms=st.sampled_from([0, 1, 3_000, 6_000, 60_000, 400_000]))
    def time_passes(self, delay_ms: int) -> None:
        self.harness.advance(delay_ms)

    @rule(error=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def disk_or_replicas_change(self, error: ErrorCode | None) -> None:
        self.harness.append_error = error

    @rule()
    def coordinator_moves(self) -> None:
        before = self.harness
        after = before.restarted()
        before.run(before.shard.on_unloaded())
        assert not [inbox for inbox in before.inboxes if inbox.is_parked]
        assert before.timers.due == {}
        self.harness = after
        self.generations = {}

    def check_commit(self, error: ErrorCode, offset: int, group_id: str, partition: int) -> None:
        if error is ErrorCode.NONE:
            found = self.harness.fetch(partition=partition, group_id=group_id)
            assert found.committed_offset == offset

    @invariant()
    def every_parked_reply_has_an_owner(self) -> None:
        if not hasattr(self, "harness"):
            return
        owned: list[Inbox | None] = []
        for group_id in self.harness.shard.group_ids:
            group = self.group(group_id)
            for member in group.members.values():
                owned += [member.joining, member.syncing]  # type: ignore[list-item]
        waiting = [each for each in owned if each is not None]
        parked = [inbox for inbox in self.harness.inboxes if inbox.is_parked]
        assert {id(each) for each in waiting} == {id(each) for each in parked}
        assert len(waiting) == len(parked)
        self.harness.inboxes = parked

    @invariant()
    def groups_are_sound(self) -> None:
        if not hasattr(self, "harness"):
            return
        for group_id in self.harness.shard.group_ids:
            group = self.group(group_id)
            assert group.generation >= self.generations.get(group_id, 0)
            self.generations[group_id] = group.generation
            check_sound(group)
            self.check_timers(group)
        for gone in set(self.generations) - set(self.harness.shard.group_ids):
            del self.generations[gone]

    @invariant()
    def a_restart_reads_back_what_was_stored(self) -> None:
        if not hasattr(self, "harness"):
            return
        other = self.harness.restarted()
        for group_id in {*self.harness.shard.group_ids, *other.shard.group_ids}:
            assert other.stored_offsets(group_id) == self.harness.stored_offsets(group_id)
            live = self.harness.shard.find(group_id)
            read = other.shard.find(group_id)
            if read is not None:
                assert live is not None
                assert read.generation <= live.generation
            if live is not None and live.state is GroupState.STABLE:
                assert read is not None
                assert stored_view(read) == stored_view(live)

    def check_timers(self, group: ClassicGroup) -> None:
        """A member always has a session timer; a join phase always ends."""
        keys = {(key.kind.name, key.member_id) for key in self.due(group)}
        for member_id in (*group.members, *group.pending_members):
            assert ("SESSION", member_id) in keys
        assert (("JOIN", "") in keys) == (group.state is GroupState.PREPARING_REBALANCE)
        assert (("SYNC", "") in keys) == bool(group.pending_syncs)
        assert len(keys) == len(group.members) + len(group.pending_members) + (
            group.state is GroupState.PREPARING_REBALANCE
        ) + bool(group.pending_syncs)

    def due(self, group: ClassicGroup) -> list[TimerKey]:
        return [key for key in self.harness.timers.due if key.group_id == group.group_id]

    def group(self, group_id: str) -> ClassicGroup:
        group = self.harness.shard.find(group_id)
        assert group is not None
        return group


def check_sound(group: ClassicGroup) -> None:
    """Counts and maps beside the members agree with the members."""
    members = group.members
    assert (group.leader_id in members) if members else (group.leader_id is None)
    assert bool(members) or group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
    assert not (members and group.state is GroupState.EMPTY)
    assert group.awaiting_join == sum(each.joining is not None for each in members.values())
    assert not set(group.pending_members) & set(members)
    assert set(group.pending_syncs) <= set(members)
    assert group.static_members == {
        each.group_instance_id: each.member_id
        for each in members.values()
        if each.group_instance_id is not None
    }
    for member_id, member in members.items():
        assert member.member_id == member_id
        assert member.joining is None or group.state is GroupState.PREPARING_REBALANCE
        assert member.syncing is None or group.state is GroupState.COMPLETING_REBALANCE
    common = [
        name
        for name in ("range", "sticky")
        if members and all(name in dict(each.protocols) for each in members.values())
    ]
    assert common or not members


def stored_view(group: ClassicGroup) -> object:
    """Return the part of a stable group that its record holds."""
    return (
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader_id,
        {
            each.member_id: (
                each.group_instance_id,
                each.session_timeout_ms,
                each.rebalance_timeout_ms,
                each.metadata_for(group.protocol or ""),
                each.assignment,
            )
            for each in group.members.values()
        },
    )


TestShard = ShardMachine.TestCase
TestShard.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
