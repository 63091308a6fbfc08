"""Drawn members of both protocols in one group, compared with their answers and commits.

- of the members that the group has, no two own a partition
- whoever owns a partition may commit it, a member that was removed may not
- what is committed is what was accepted last, whatever the group turns into
- epochs and generations rise as long as there are members, over moves to the other protocol, too
- a coordinator that takes over knows all that the one before knew
- what is not stored has not happened
- once everybody is quick again, all partitions are owned and the group is stable
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.classic_members.classic_member import (
    ClassicMember,
    assignment_of,
)
from tests.coordinator.consumer_groups.consumer_harness import Member, consumer_harness, described
from tests.coordinator.harness import GROUP

if TYPE_CHECKING:
    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.groups.group import ClassicGroup
    from tests.coordinator.harness import Harness, Inbox

NAMES = st.sampled_from("abcd")
CLASSICS = st.sampled_from("klm")
TOPIC = "orders"
JOIN_AGAIN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.ILLEGAL_GENERATION,
)
ROUNDS = 12
"""Seconds that the members of a classic group are waited for."""


class ConsumerGroupMachine(RuleBasedStateMachine):
    """A group; members act as real ones do, each at its own pace."""

    harness: Harness

    @initialize(partitions=st.integers(1, 7))
    def begin(self, partitions: int) -> None:
        self.partitions = partitions
        self.harness = consumer_harness(orders=partitions)
        self.members: dict[str, Member] = {}
        self.classics: dict[str, ClassicMember] = {}
        self.positions: dict[int, int] = {}
        self.epoch = 0
        self.number = 0

    # Members of the consumer protocol

    @rule(name=NAMES)
    def join(self, name: str) -> None:
        member = Member(self.harness, name, [TOPIC])
        if member.join() is ErrorCode.NONE:
            self.members[name] = member

    @rule(name=NAMES, is_slow=st.booleans(), is_lost=st.booleans())
    def heartbeat(self, name: str, *, is_slow: bool, is_lost: bool) -> None:
        """Send a heartbeat; a slow member revokes nothing, and a lost answer changes nothing."""
        member = self.members.get(name)
        if member is None:
            return
        owned, epoch = member.owned, member.epoch
        if member.heartbeat() in JOIN_AGAIN:
            del self.members[name]
        elif is_lost:
            member.owned, member.epoch = owned, epoch
        elif is_slow and not _indexes(owned) <= _indexes(member.owned):
            member.owned = owned

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        member = self.members.pop(name, None)
        if member is not None:
            member.leave()

    # Members of the classic protocol

    @rule(name=CLASSICS)
    def join_as_classic(self, name: str) -> None:
        """Join by the classic protocol; in a classic group all members have to rejoin."""
        self.classics[name] = ClassicMember(self.harness, [TOPIC])
        self._gather(name)

    @rule(name=CLASSICS)
    def heartbeat_as_classic(self, name: str) -> None:
        member = self.classics.get(name)
        if member is None:
            return
        error = self.harness.heartbeat(member.member_id, member.generation)
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._gather(name)
        elif error is not ErrorCode.NONE:
            del self.classics[name]

    @rule(name=CLASSICS)
    def leave_as_classic(self, name: str) -> None:
        member = self.classics.pop(name, None)
        if member is not None:
            member.leave()

    def _gather(self, name: str) -> None:
        """Join a member; and all the others, if the group is a classic one."""
        # An empty consumer group becomes a classic one first, as in the handler of JoinGroup.
        if (group := self._consumer_group()) is not None and not group.members:
            self.harness.append(self.harness.shard.handle_change_to_classic(GROUP))
        names = [name] if self._consumer_group() is not None else list(self.classics)
        inboxes = {each: self.classics[each].ask_to_join() for each in names}
        for _ in range(ROUNDS):
            if any(inbox.is_parked for inbox in inboxes.values()):
                self.harness.advance(1_000)
        answered = {
            each: inbox
            for each, inbox in inboxes.items()
            if not inbox.is_parked and self.classics[each].joined(inbox) is ErrorCode.NONE
        }
        self._share_out(answered)
        for each in names:
            if each not in answered or self.classics[each].sync() in JOIN_AGAIN:
                del self.classics[each]

    def _share_out(self, answered: dict[str, Inbox]) -> None:
        """Assign as the leader of a classic group; a consumer group has none."""
        ids = [self.classics[each].member_id for each in answered]
        for each, inbox in answered.items():
            member = self.classics[each]
            if inbox.response.leader != member.member_id:
                continue
            shares = {
                member_id: assignment_of(orders=list(range(place, self.partitions, len(ids))))
                for place, member_id in enumerate(ids)
            }
            self.harness.sync(member.member_id, member.generation, shares)

    # Positions

    @rule(name=NAMES)
    def commit(self, name: str) -> None:
        member = self.members.get(name)
        if member is None:
            return
        is_member, is_stored = name in self._present(), self.harness.append_error is None
        for partition in _indexes(member.owned):
            error = self._commit(partition, name, member.epoch, version=9)
            assert (error is ErrorCode.NONE) == (is_member and is_stored), (partition, error)

    @rule(name=CLASSICS)
    def commit_as_classic(self, name: str) -> None:
        member = self.classics.get(name)
        if member is None:
            return
        is_member = name in self._present_classics()
        for partition in member.owned.get(TOPIC, ()):
            error = self._commit(partition, member.member_id, member.generation, version=8)
            assert is_member or error is not ErrorCode.NONE

    def _commit(self, partition: int, member_id: str, epoch: int, *, version: int) -> ErrorCode:
        self.number += 1
        error = self.harness.commit(
            self.number,
            member_id=member_id,
            generation=epoch,
            partition=partition,
            version=version,
        )
        if error is ErrorCode.NONE:
            self.positions[partition] = self.number
        return error

    # Time, the log, the coordinator

    @rule(name=st.sampled_from("abcdklm"))
    def die(self, name: str) -> None:
        """Fall silent, owning nothing; the group detects it later."""
        self.members.pop(name, None)
        self.classics.pop(name, None)

    @rule(delay_ms=st.sampled_from([1_000, 4_000, 25_000]))
    def time_passes(self, delay_ms: int) -> None:
        self.harness.advance(delay_ms)

    @rule(more=st.integers(1, 3))
    def topic_grows(self, more: int) -> None:
        self.partitions += more
        self.harness.topics.put(TOPIC, self.partitions)

    @rule(error=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def replicas_change(self, error: ErrorCode | None) -> None:
        self.harness.append_error = error

    @rule(share=st.sampled_from([0.3, 0.7, 1.0]), drops_tombstones=st.booleans())
    def log_is_compacted(self, share: float, *, drops_tombstones: bool) -> None:
        """The next coordinator reads what is left."""
        self.harness.compact(share, drops_tombstones=drops_tombstones)

    @rule()
    def coordinator_moves(self) -> None:
        error, before = self.harness.append_error, self._stored()
        self.harness = self.harness.restarted()
        self.harness.append_error = error
        for member in self.members.values():
            member.harness = self.harness
        for classic in self.classics.values():
            classic.harness = self.harness
        if before is None:
            self.epoch = 0  # a generation is stored once it is stable
        else:
            assert self._stored() == before

    # What holds

    @invariant()
    def nothing_is_owned_twice(self) -> None:
        owned = [
            (partition, name)
            for name, member in self._present().items()
            for partition in _indexes(member.owned)
        ]
        owned += [
            (partition, name)
            for name, classic in self._present_classics().items()
            for partition in classic.owned.get(TOPIC, ())
        ]
        assert len({partition for partition, _ in owned}) == len(owned), owned

    @invariant()
    def positions_are_those_that_were_accepted(self) -> None:
        stored = self.harness.stored_offsets() if hasattr(self, "harness") else {}
        assert stored == {(TOPIC, each): at for each, at in getattr(self, "positions", {}).items()}

    @invariant()
    def epochs_rise(self) -> None:
        if not hasattr(self, "harness"):
            return
        consumers, classic = self._consumer_group(), self._classic_group()
        assert consumers is None or classic is None, "it is one or the other"
        epoch = consumers.epoch if consumers else classic.generation if classic else 0
        members = consumers.members if consumers else classic.members if classic else {}
        assert epoch >= self.epoch or not members
        self.epoch = epoch if members else 0

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.harness.append_error = None
        self.members.clear()
        self.classics.clear()
        self.harness.advance(130_000)
        for name in "abc":
            self.join(name)
        for _ in range(8):
            for member in self.members.values():
                assert member.heartbeat() is ErrorCode.NONE
        assert described(self.harness).group_state == "Stable"
        owned = [each for member in self.members.values() for each in _indexes(member.owned)]
        assert sorted(owned) == list(range(self.partitions))

    def _present(self) -> dict[str, Member]:
        """Return the members, without those that the group removed behind their back."""
        group = self._consumer_group() if hasattr(self, "harness") else None
        if group is None:
            return {}
        return {
            name: member
            for name, member in self.members.items()
            if name in group.members and member.epoch <= group.members[name].member_epoch
        }

    def _present_classics(self) -> dict[str, ClassicMember]:
        if not hasattr(self, "harness"):
            return {}
        consumers, classic = self._consumer_group(), self._classic_group()

        def is_present(member: ClassicMember) -> bool:
            if consumers is not None:
                return member.member_id in consumers.members
            if classic is None or member.member_id not in classic.members:
                return False
            return member.generation == classic.generation

        return {name: member for name, member in self.classics.items() if is_present(member)}

    def _consumer_group(self) -> ConsumerGroup | None:
        return self.harness.shard.consumers.groups.find(GROUP)

    def _classic_group(self) -> ClassicGroup | None:
        return self.harness.shard.find(GROUP)

    def _stored(self) -> Any:
        """Return the state that a new coordinator has to load."""
        group, classic = self._consumer_group(), self._classic_group()
        if group is not None:
            names = ("epoch", "assignment_epoch", "members", "targets", "static_members", "owners")
            return tuple(getattr(group, name) for name in names)
        if classic is not None and classic.state is GroupState.STABLE:
            assignments = {each.member_id: each.assignment for each in classic.members.values()}
            return classic.generation, assignments
        return None


def _indexes(owned: dict[Any, list[int]]) -> set[int]:
    return {each for partitions in owned.values() for each in partitions}


TestConsumerGroup = ConsumerGroupMachine.TestCase
TestConsumerGroup.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
