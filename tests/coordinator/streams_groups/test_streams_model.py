"""A streams group under drawn members: slow ones, lost answers, deaths, and coordinators that move.

Whatever comes: a task runs at one member at a time, a process has nothing twice, the log says all
that the coordinator knows, and once everybody is quick again all tasks run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from protocol.errors import ErrorCode
from tests.coordinator.streams_groups.streams_harness import (
    AT_ONCE,
    SOURCES,
    Member,
    described,
    group_of,
    settle,
    streams_harness,
)
from tests.support.topologies import topology

if TYPE_CHECKING:
    from tests.coordinator.harness import Harness

NAMES = {"a": "p", "b": "p", "c": "q", "d": "q", "e": "r"}
TASKS = {"stateful": 6, "stateless": 10, "repartitioned": 8}
REJOIN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class StreamsModel(RuleBasedStateMachine):
    """Members that do as real ones do, each at its own pace."""

    harness: Harness
    kind: str

    @initialize(kind=st.sampled_from(sorted(TASKS)), replicas=st.integers(0, 2))
    def begin(self, kind: str, replicas: int) -> None:
        self.kind = kind
        self.harness = streams_harness(replace(AT_ONCE, num_standby_replicas=replicas), **SOURCES)
        self.members: dict[str, Member] = {}

    @rule(name=st.sampled_from(sorted(NAMES)))
    def join(self, name: str) -> None:
        member = Member(self.harness, name, topology(self.kind, "app"), NAMES[name])
        if member.join() is ErrorCode.NONE:
            self.members[name] = member

    @rule(name=st.sampled_from(sorted(NAMES)), is_slow=st.booleans(), is_lost=st.booleans())
    def heartbeat(self, name: str, *, is_slow: bool, is_lost: bool) -> None:
        """Send a heartbeat; a slow member revokes nothing, and a lost answer changes nothing."""
        member = self.members.get(name)
        if member is None:
            return
        owned, epoch = member.owned, member.epoch
        if member.heartbeat() in REJOIN:
            del self.members[name]
        elif is_lost:
            member.owned, member.epoch = owned, epoch
        elif is_slow and not _are_within(owned, member.owned):
            member.owned = owned

    @rule(name=st.sampled_from(sorted(NAMES)))
    def leave(self, name: str) -> None:
        member = self.members.pop(name, None)
        if member is not None:
            member.leave()

    @rule(name=st.sampled_from(sorted(NAMES)))
    def die(self, name: str) -> None:
        """Fall silent, running nothing; the group detects it later."""
        self.members.pop(name, None)

    @rule()
    def half_a_session_passes(self) -> None:
        self.harness.advance(25_000)

    @rule(share=st.sampled_from([0.3, 0.7, 1.0]), drops_tombstones=st.booleans())
    def log_is_compacted(self, share: float, *, drops_tombstones: bool) -> None:
        """The next coordinator reads what is left."""
        self.harness.compact(share, drops_tombstones=drops_tombstones)

    @rule()
    def coordinator_moves(self) -> None:
        before = self._shown()
        self.harness = self.harness.restarted()
        for member in self.members.values():
            member.harness = self.harness
        assert self._shown() == before

    @invariant()
    def nothing_runs_twice(self) -> None:
        running = [
            (task, NAMES[member.member_id], kind)
            for member in self._present()
            for kind in ("active", "standby")
            for task in _ids(member, kind)
        ]
        active = [task for task, _, kind in running if kind == "active"]
        assert len(set(active)) == len(active), running
        in_process = [(task, process) for task, process, _ in running]
        assert len(set(in_process)) == len(in_process), running

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.harness.advance(50_000)
        self.harness.advance(50_000)
        self.members.clear()
        for name in "ace":
            self.join(name)
        present = list(self.members.values())
        settle(*present)
        assert sum(member.count() for member in present) == TASKS[self.kind]
        assert described(self.harness).group_state == "Stable"

    def _present(self) -> list[Member]:
        """Return the members, without those that the group removed behind their back."""
        group = self.harness.shard.streams.groups.find("orders")
        if group is None:
            return []
        return [
            member
            for name, member in self.members.items()
            if name in group.members and member.epoch <= group.members[name].member_epoch
        ]

    def _shown(self) -> Any:
        shown = described(self.harness)
        if shown.error_code:
            return shown.error_code
        memory = group_of(self.harness).memory
        assert memory.configured is None or memory.configured.is_ready or not shown.members[9:]
        return shown.group_epoch, shown.assignment_epoch, shown.group_state, shown.members


def _ids(member: Member, kind: str) -> list[tuple[str, int]]:
    tasks = member.owned.get(kind, {})
    return [(name, partition) for name in tasks for partition in tasks[name]]


def _are_within(owned: dict[str, Any], told: dict[str, Any]) -> bool:
    return all(
        set(partitions) <= set(told[kind].get(name, ()))
        for kind, tasks in owned.items()
        for name, partitions in tasks.items()
    )


StreamsModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStreamsModel = StreamsModel.TestCase
