"""Random leaders, clocks, prunings and failovers, beside a state of every single record.

- what is read is what was stored, and what was stored last of each record
- a delivery count never falls and an acknowledgement is never lost, unless the state begins anew
- whoever was refused has changed nothing
- a failover reads back from the shortened log what was there
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator.share_state.settings import ShareStateSettings
from protocol.errors import ApiError
from tests.coordinator.share_state.harness import Harness

PARTITIONS = st.integers(0, 1)
LAST = 30


@dataclass
class Model:
    """A share-partition."""

    state_epoch: int
    start: int
    leader_epoch: int = 0
    records: dict[int, tuple[int, int]] = field(default_factory=dict)


class ShareStateMachine(RuleBasedStateMachine):
    """A shard."""

    def __init__(self) -> None:
        super().__init__()
        self.harness = Harness(ShareStateSettings(updates_per_snapshot=2))
        self.models: dict[int, Model] = {}

    @rule(partition=PARTITIONS, epoch=st.integers(0, 4), start=st.integers(-1, LAST))
    def initialise(self, partition: int, epoch: int, start: int) -> None:
        known = self.models.get(partition)
        if known is not None and epoch < known.state_epoch:
            with pytest.raises(ApiError, match="FENCED_STATE_EPOCH"):
                self.harness.initialise(epoch, start, partition)
            return
        self.harness.initialise(epoch, start, partition)
        if known is not None and epoch == known.state_epoch and start < 0:
            return  # it comes again
        leader_epoch = 0 if known is None else known.leader_epoch
        self.models[partition] = Model(epoch, start, leader_epoch)

    @rule(
        partition=PARTITIONS,
        behind=st.sampled_from([0, 0, 0, 1]),
        leads_since=st.sampled_from([0, 0, 0, 1, -1]),
        ranges=st.lists(
            st.tuples(st.integers(0, LAST), st.integers(0, 5), st.sampled_from([0, 2, 4])),
            max_size=3,
        ),
        step=st.sampled_from([-1, 0, 3]),
        count=st.integers(1, 4),
    )
    def write(  # noqa: PLR0913, PLR0917 - what hypothesis draws
        self,
        partition: int,
        behind: int,
        leads_since: int,
        ranges: list[tuple[int, int, int]],
        step: int,
        count: int,
    ) -> None:
        model = self.models.get(partition, Model(0, -1))
        start = -1 if step < 0 else max(model.start, 0) + step
        epochs = max(model.state_epoch - behind, 0), max(model.leader_epoch + leads_since, 0)
        batches = [(first, first + length, state, count) for first, length, state in ranges]
        is_fenced = epochs[0] < model.state_epoch or epochs[1] < model.leader_epoch
        try:
            self.harness.write(*batches, epochs=epochs, start=start, partition=partition)
        except ApiError:
            assert is_fenced or partition not in self.models
            return
        assert not is_fenced
        assert partition in self.models
        if start >= 0:
            model.start = start
        for first, last, state, _ in batches:
            for offset in range(first, last + 1):
                before = model.records.get(offset, (0, 0))
                model.records[offset] = max(before, (count, state))
        model.records = {o: each for o, each in model.records.items() if o >= model.start}

    @rule(partition=PARTITIONS, ahead=st.sampled_from([0, 0, 1, -1]))
    def read(self, partition: int, ahead: int) -> None:
        model = self.models.get(partition)
        epoch = max((0 if model is None else model.leader_epoch) + ahead, 0)
        try:
            state = self.harness.read(epoch, partition)
        except ApiError:
            assert model is None or epoch < model.leader_epoch
            return
        assert model is not None
        model.leader_epoch = max(model.leader_epoch, epoch)
        assert (state.state_epoch, state.start_offset) == (model.state_epoch, model.start)

    @rule(partition=PARTITIONS)
    def delete(self, partition: int) -> None:
        self.harness.delete(partition)
        self.models.pop(partition, None)

    @rule()
    def write_again_what_is_old(self) -> None:
        self.harness.now_ms += self.harness.settings.cold_snapshot_interval_ms
        for some in self.harness.shard.snapshot_cold(self.harness.now_ms):
            self.harness.append(some)

    @rule()
    def prune(self) -> None:
        self.harness.prune()

    @rule()
    def fail_over(self) -> None:
        before = {key: self.harness.shard.find(key) for key in self.harness.shard.share_partitions}
        self.harness.shard = self.harness.reloaded()
        after = {key: self.harness.shard.find(key) for key in self.harness.shard.share_partitions}
        assert after == before
        for partition, model in self.models.items():
            # A state that began anew names no leader; its own epoch fences those from before.
            kept = self.harness.shard._kept[self.harness.key(partition)]
            assert kept.state.leader_epoch <= kept.leader_epoch <= model.leader_epoch
            model.leader_epoch = kept.leader_epoch

    @invariant()
    def what_is_stored_is_what_was_written(self) -> None:
        shard = self.harness.shard
        assert {key.partition for key in shard.share_partitions} == self.models.keys()
        for partition, model in self.models.items():
            state = shard.find(self.harness.key(partition))
            assert state is not None
            assert (state.state_epoch, state.start_offset) == (model.state_epoch, model.start)
            assert model.records == {
                offset: (each.delivery_count, each.delivery_state)
                for each in state.batches
                for offset in range(each.first_offset, each.last_offset + 1)
            }


TestShareState = ShareStateMachine.TestCase
TestShareState.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
