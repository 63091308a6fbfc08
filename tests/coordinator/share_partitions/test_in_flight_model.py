"""Drawn members, locks, failed writes and new leaders: nothing is lost, nothing comes again.

After every step the ranges are whole (`JudgedRecords.check`); what was stored as acknowledged or
archived is not delivered again; a delivery count never falls. In the end, when everything that is
delivered is accepted, nothing is left in flight and all of the log was finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
from coordinator.share_partitions.record_range import AcknowledgeType
from coordinator.share_partitions.settings import ShareGroupSettings
from protocol.errors import ApiError, ErrorCode
from tests.coordinator.share_partitions.judged_records import JudgedRecords

if TYPE_CHECKING:
    from coordinator.share_partitions.acquisition import Acquired

LOCK_MS = 1000
MEMBERS = st.sampled_from(["one", "two", "three"])
KINDS = st.sampled_from(list(AcknowledgeType))
REFUSALS = {ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST}


class ShareMachine(RuleBasedStateMachine):
    """A partition and three members of a group."""

    @initialize(
        limit=st.integers(2, 6),
        locks=st.sampled_from([5, 20, 200]),
        committed=st.booleans(),
        batches=st.lists(st.integers(1, 9), max_size=6),
    )
    def start(self, limit: int, locks: int, committed: bool, batches: list[int]) -> None:
        self.judged = JudgedRecords(
            ShareGroupSettings(limit, locks, LOCK_MS, is_read_committed=committed)
        )
        self.held: dict[str, list[Acquired]] = {}
        for count in batches:
            self.judged.append(count, hole=0)

    @rule(count=st.integers(1, 12), hole=st.sampled_from([0, 0, 0, 3]), aborted=st.booleans())
    def append(self, count: int, hole: int, aborted: bool) -> None:
        self.judged.append(count, hole, is_aborted=aborted and count % 3 == 0)

    @rule(member=MEMBERS, kind=KINDS, rounds=st.integers(1, 4))
    def fail_again_and_again(self, member: str, kind: AcknowledgeType, rounds: int) -> None:
        for _ in range(rounds):
            for one in self.judged.acquire(member, 30, 6):
                self._acknowledge(member, AcknowledgementBatch(one.first, one.last, [kind]))
            while self.judged.pending:
                self.judged.store()

    @rule(member=MEMBERS, kind=KINDS, other=MEMBERS)
    def acknowledge_for_another(self, member: str, kind: AcknowledgeType, other: str) -> None:
        for one in self.held.get(other, ()):
            self._acknowledge(member, AcknowledgementBatch(one.first, one.last, [kind]))

    @rule(
        member=MEMBERS,
        most=st.integers(1, 30),
        batches=st.integers(1, 6),
        keeps=st.booleans(),
    )
    def acquire(self, member: str, most: int, batches: int, keeps: bool) -> None:
        acquired = self.judged.acquire(member, most, batches, keeps_to_limit=keeps)
        self.held.setdefault(member, []).extend(acquired)

    @rule(member=MEMBERS, kind=KINDS, data=st.data())
    def acknowledge_what_is_held(
        self, member: str, kind: AcknowledgeType, data: st.DataObject
    ) -> None:
        """Also what it holds no more, as the lock expired: then it is refused."""
        held = self.held.get(member)
        if not held:
            return
        one = held.pop(data.draw(st.integers(0, len(held) - 1)))
        first = data.draw(st.integers(one.first, one.last))
        last = data.draw(st.integers(first, one.last))
        self._acknowledge(member, AcknowledgementBatch(first, last, [kind]))
        if kind is AcknowledgeType.RENEW:
            held.append(one)

    @rule(member=MEMBERS, data=st.data())
    def acknowledge_each(self, member: str, data: st.DataObject) -> None:
        held = self.held.get(member)
        if not held:
            return
        one = held.pop()
        count = one.last - one.first + 1
        types = data.draw(st.lists(KINDS, min_size=count, max_size=count))
        self._acknowledge(member, AcknowledgementBatch(one.first, one.last, types))

    @rule(member=MEMBERS, first=st.integers(0, 60), count=st.integers(1, 40), kind=KINDS)
    def acknowledge_anything(
        self, member: str, first: int, count: int, kind: AcknowledgeType
    ) -> None:
        self._acknowledge(member, AcknowledgementBatch(first, first + count - 1, [kind]))

    def _acknowledge(self, member: str, batch: AcknowledgementBatch) -> None:
        try:
            self.judged.acknowledge(member, batch)
        except ApiError as error:
            if error.code not in REFUSALS:
                raise
            self.judged.check()

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.judged.records.leave(member)
        most = 3
        while True:
            released = self.judged.records.release_departed(self.judged.now_ms, most)
            count = len(released.ranges)
            self.judged.note(released)
            if count < most:
                break
        self.held.pop(member, None)

    @rule(ms=st.sampled_from([1, 400, 1000]))
    def pass_time(self, ms: int) -> None:
        self.judged.pass_time(ms)

    @precondition(lambda self: self.judged.pending)
    @rule(is_stored=st.sampled_from([True, True, False]))
    def answer_of_the_coordinator(self, is_stored: bool) -> None:
        if is_stored:
            self.judged.store()
        else:
            self.judged.refuse()

    @rule(index=st.integers(0, 10))
    def compact(self, index: int) -> None:
        self.judged.compact(index)

    @rule(offset=st.integers(0, 40))
    def retain(self, offset: int) -> None:
        self.judged.retain_from(offset)

    @rule()
    def new_leader(self) -> None:
        self.judged.restart()
        self.held.clear()

    def teardown(self) -> None:
        """Deliver and accept everything."""
        judged = self.judged
        while judged.pending:
            judged.store()
        judged.pass_time(LOCK_MS)
        for _ in range(10_000):
            acquired = judged.acquire("last", 50, 10)
            if not acquired and judged.records.ranges.end >= judged.log_end:
                break
            for one in acquired:
                judged.acknowledge(
                    "last", AcknowledgementBatch(one.first, one.last, [AcknowledgeType.ACCEPT])
                )
            while judged.pending:
                judged.store()
        ranges = judged.records.ranges
        assert list(ranges) == []
        assert ranges.start >= judged.log_end
        assert judged.unfinished() == []


TestShareMachine = ShareMachine.TestCase
TestShareMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    suppress_health_check=list(HealthCheck),
)
