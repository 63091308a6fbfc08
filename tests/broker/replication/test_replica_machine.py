"""The replica machine: golden scenarios, and what it asserts of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.replication.effects import NOTHING
from broker.replication.replica_machine import ReplicaMachine, ReplicaSettings
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from tests.broker.replication.scenario import INDENT, MAX_LAG_MS, ListLog, Scenario

SCENARIOS = sorted(Path(__file__).parent.joinpath("scenarios").glob("*.txt"))
NOW_MS = 1_000_000


def played(text: str) -> str:
    """The scenario with what its commands come to now."""
    scenario = Scenario()
    lines = []
    for line in text.splitlines():
        if line.startswith(INDENT):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [INDENT + said for said in scenario.run(line)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_each_golden_scenario_plays_as_recorded(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    now = played(text)
    if os.environ.get("SCENARIOS") == "write":
        path.write_text(now, encoding="utf-8")
    else:
        assert now == text


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 8


def state(
    leader: int = 1, epoch: int = 0, isr: tuple[int, ...] = (1, 2), partition_epoch: int = 0
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        isr=list(isr),
        replicas=[1, 2, 3],
    )


@pytest.fixture
def log() -> ListLog:
    return ListLog()


@pytest.fixture
def machine(log: ListLog) -> ReplicaMachine:
    machine = ReplicaMachine("orders-0", log, ReplicaSettings(1, MAX_LAG_MS, {2, 3}.__contains__))
    log.begin(0)
    machine.assume(state(), NOW_MS)
    return machine


def test_a_stale_state_is_never_assumed(machine: ReplicaMachine) -> None:
    with pytest.raises(AssertionError, match="epochs would go back"):
        machine.assume(state(epoch=-1), NOW_MS)


def test_leading_in_an_epoch_missing_from_the_log_is_an_assertion_error(
    machine: ReplicaMachine,
) -> None:
    assert machine.epoch_to_begin(state(epoch=1)) == 1
    with pytest.raises(AssertionError, match="has not noted"):
        machine.assume(state(epoch=1), NOW_MS)


def test_a_leader_follows_nobody_and_truncates_nothing(machine: ReplicaMachine) -> None:
    with pytest.raises(AssertionError, match="follows nobody"):
        machine.heard_from_leader(3, 0)
    with pytest.raises(AssertionError, match="truncates nothing"):
        machine.diverged(0, 0)
    with pytest.raises(AssertionError, match="truncates nothing"):
        machine.leader_ends_at(0)
    with pytest.raises(AssertionError, match="truncates nothing"):
        machine.leader_begins_at(9)


def test_committing_beyond_an_in_sync_replica_is_an_assertion_error(
    machine: ReplicaMachine, log: ListLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([0] * 5)
    monkeypatch.setattr(type(machine.in_sync), "replicated_up_to", lambda *_: 5)
    with pytest.raises(AssertionError, match="which not all have"):
        machine.fetched_by(2, 102, 3, 0, NOW_MS)


def test_nothing_is_committed_beyond_the_logs_end(
    machine: ReplicaMachine, log: ListLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([0] * 5)
    monkeypatch.setattr(type(machine.in_sync), "replicated_up_to", lambda *_: 6)
    with pytest.raises(AssertionError, match="beyond the log's end"):
        machine.fetched_by(2, 102, 5, 0, NOW_MS)


def test_the_sets_that_count_agree(machine: ReplicaMachine) -> None:
    machine.in_sync.maximal = frozenset({1})
    with pytest.raises(AssertionError, match=r"frozenset\(\{1\}\) is not"):
        machine.assume(state(partition_epoch=1), NOW_MS)


def test_a_step_that_changes_nothing_asks_for_nothing(machine: ReplicaMachine) -> None:
    machine.fetched_by(2, 102, 0, 0, NOW_MS)
    assert machine.fetched_by(2, 102, 0, 0, NOW_MS) is NOTHING
    assert machine.tick(NOW_MS) is NOTHING
