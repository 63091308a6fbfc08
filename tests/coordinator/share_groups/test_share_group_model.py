"""A share group under drawn members: lost answers, deaths, share coordinators that refuse.

- nobody has a partition before its state is initialised, or of a topic that they do not name
- epochs rise as long as there are members
- who is in the epoch that it was told last knows what it has
- a coordinator that takes over knows all that the one before knew
- once everybody is quick again, each member knows what it has, and somebody has each partition
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from protocol.errors import ErrorCode
from tests.coordinator.harness import GROUP
from tests.coordinator.share_groups.share_harness import Shares, share_harness

NAMES = st.sampled_from("abc")
TOPICS = st.sampled_from([("t",), ("u",), ("t", "u")])
SESSION_MS = 46_000
PASSING = {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class ShareGroupModel(RuleBasedStateMachine):
    """A group; the partitions initialised by share coordinators are the reference."""

    shares: Shares

    @initialize(few=st.integers(1, 3), more=st.integers(1, 5))
    def begin(self, few: int, more: int) -> None:
        self.partitions = {"t": few, "u": more}
        self.shares = share_harness(t=few, u=more)
        self.topics: dict[str, tuple[str, ...]] = {}
        self.initialised: set[tuple[str, int]] = set()
        self.epoch = 0

    # Members

    @rule(name=NAMES, topics=TOPICS)
    def join(self, name: str, topics: tuple[str, ...]) -> None:
        """Join; a refused member counts itself as removed, and has to join again."""
        self._forget(name)
        if not self.shares.beat(name, *topics).error_code:
            self.topics[name] = topics

    @rule(lost=st.sets(NAMES))
    def all_heartbeat(self, lost: set[str]) -> None:
        """Send all heartbeats; a lost answer has no effect on its member."""
        for name in list(self.topics):
            epoch, told = self.shares.epochs[name], self.shares.told[name]
            if self.shares.beat(name).error_code not in PASSING:
                self._forget(name)
            elif name in lost:
                self.shares.epochs[name], self.shares.told[name] = epoch, told

    @rule(name=NAMES, topics=TOPICS)
    def subscribe_anew(self, name: str, topics: tuple[str, ...]) -> None:
        if name in self.topics and not self.shares.beat(name, *topics).error_code:
            self.topics[name] = topics

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        if (
            name in self.topics
            and self.shares.leave(name) is not ErrorCode.COORDINATOR_NOT_AVAILABLE
        ):
            self._forget(name)

    @rule(name=NAMES)
    def die(self, name: str) -> None:
        """Fall silent; the group detects it later."""
        self._forget(name)

    def _forget(self, name: str) -> None:
        for known in (self.topics, self.shares.epochs, self.shares.told):
            known.pop(name, None)

    # Share coordinators, topics, the log, time

    @rule(is_refused=st.booleans())
    def share_coordinators_answer(self, *, is_refused: bool) -> None:
        if not is_refused:
            for wanted in self.shares.asked:
                self.initialised |= {self._place(each) for each in wanted.start_offsets}
        self.shares.initialise(failing=is_refused)

    @rule()
    def share_coordinators_are_not_heard(self) -> None:
        """Lose the answers of share coordinators that have done their requests."""
        self.shares.asked.clear()

    @rule(topic=st.sampled_from("tu"), more=st.integers(1, 2))
    def topic_grows(self, topic: str, more: int) -> None:
        self.partitions[topic] += more
        self.shares.harness.topics.put(topic, self.partitions[topic])

    @rule(error=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def replicas_change(self, error: ErrorCode | None) -> None:
        self.shares.harness.append_error = error

    @rule(delay_ms=st.sampled_from([1_000, 20_000, SESSION_MS]))
    def time_passes(self, delay_ms: int) -> None:
        self.shares.harness.advance(delay_ms)

    @rule(share=st.sampled_from([0.3, 0.7, 1.0]), drops_tombstones=st.booleans())
    def log_is_compacted(self, share: float, *, drops_tombstones: bool) -> None:
        """The next coordinator reads what is left."""
        self.shares.harness.compact(share, drops_tombstones=drops_tombstones)

    @rule()
    def coordinator_moves(self) -> None:
        before, error = self._stored(), self.shares.harness.append_error
        self.shares.harness = self.shares.harness.restarted()
        self.shares.harness.append_error = error
        self.shares.asked.clear()
        assert self._stored() == before

    # What holds

    @invariant()
    def only_what_has_state_is_assigned(self) -> None:
        for name, had in self._assigned().items():
            assert had <= self.initialised, (name, had)

    @invariant()
    def who_is_in_its_epoch_knows_what_it_has(self) -> None:
        group = self._group()
        assigned = self._assigned()
        for name in getattr(self, "topics", ()):
            epoch = self.shares.epochs[name]
            if name in assigned and group.members[name].member_epoch == epoch:
                assert self._told(name) == assigned[name]

    @invariant()
    def epochs_rise(self) -> None:
        group = self._group()
        if group is not None and group.members:
            assert group.epoch >= self.epoch
            self.epoch = group.epoch
        elif hasattr(self, "shares"):
            self.epoch = 0

    def teardown(self) -> None:
        if not hasattr(self, "shares"):
            return
        self.shares.harness.append_error = None
        if "a" not in self.topics:
            self.join("a", ("t", "u"))
        for _ in range(6):  # the dead are missed, what is initialising is asked for again
            self.shares.harness.advance(16_000)
            for name in list(self.topics):
                topics = self.topics[name]
                if self.shares.beat(name).error_code:
                    self.join(name, topics)
            self.share_coordinators_answer(is_refused=False)
        told = {name: self._told(name) for name in self.topics}
        assert told == self._assigned()
        wanted = {topic for topics in self.topics.values() for topic in topics}
        everything = {(t, index) for t in wanted for index in range(self.partitions[t])}
        assert set().union(*told.values()) == everything

    def _told(self, name: str) -> set[tuple[str, int]]:
        told = self.shares.told[name]
        return {(topic, index) for topic, indexes in told.items() for index in indexes}

    def _assigned(self) -> dict[str, set[tuple[str, int]]]:
        group = self._group()
        members = {} if group is None else group.members
        return {
            name: {
                self._place((topic_id, index))
                for topic_id, indexes in member.assigned.items()
                for index in indexes
            }
            for name, member in members.items()
        }

    def _place(self, at: tuple[Any, int]) -> tuple[str, int]:
        return str(self.shares.harness.topics.name_of(at[0])), at[1]

    def _group(self) -> Any:
        if not hasattr(self, "shares"):
            return None
        return self.shares.harness.shard.shares.groups.find(GROUP)

    def _stored(self) -> Any:
        group = self._group()
        if group is None:
            return None
        names = ("epoch", "assignment_epoch", "members", "targets", "names", "states")
        return [getattr(group, each) for each in names]


ShareGroupModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestShareGroupModel = ShareGroupModel.TestCase
