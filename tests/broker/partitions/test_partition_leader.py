"""Effects of follower fetches on the leader: the high watermark and the ISR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.partitions.partition import Partition
from broker.replication.effects import Stored
from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.append.append_source import FROM_CLIENT
from tests.broker.partitions.test_partition import ManualTimers
from tests.broker.replica_fetchers.harness import (
    MAX_LAG_MS,
    ManualClock,
    NotedProposals,
    surroundings,
)
from tests.storage.produced import NOW_MS, TOPIC_ID, batch, open_directories

if TYPE_CHECKING:
    from pathlib import Path


LEADER, SECOND, THIRD = 1, 2, 3
ALL = (LEADER, SECOND, THIRD)
ACKS_ALL = -1


class Led:
    """A partition that broker 1 leads, with followers 2 and 3, both alive."""

    def __init__(
        self, directory: Path, *, min_in_sync: int = 1, alive: tuple[int, ...] = (SECOND, THIRD)
    ) -> None:
        self.clock = ManualClock()
        self.proposals = NotedProposals()
        log = open_directories(directory).create(
            "flights", 0, TOPIC_ID, TopicConfig(min_insync_replicas=min_in_sync), NOW_MS
        )
        around = surroundings(LEADER, ManualTimers(), self.clock, self.proposals, alive)
        self.partition = Partition(log, around)

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    def assume(self, isr: tuple[int, ...] = ALL, epoch: int = 0, leader: int = LEADER) -> bool:
        return self.partition.assume(
            LeaderAndIsrPartitionState(
                partition_index=0,
                controller_epoch=1,
                leader=leader,
                leader_epoch=epoch,
                isr=list(isr),
                partition_epoch=0,
                replicas=list(ALL),
            )
        )

    def append(self, count: int) -> None:
        records = memoryview(batch(count))
        self.partition.append_records(records, ACKS_ALL, FROM_CLIENT, NOW_MS)

    def fetch(self, broker_id: int, offset: int) -> None:
        self.partition.fetched_by(broker_id, 7, offset, 0)

    def decide(self, code: ErrorCode = ErrorCode.NONE) -> tuple[int, ...]:
        """The controller answers the one proposal made; returns what was proposed."""
        ((_, proposal),) = self.proposals.noted
        self.proposals.noted.clear()
        stored = Stored(proposal.in_sync, proposal.leader_epoch, proposal.partition_epoch + 1)
        self.partition.decided(proposal, code, stored)
        return proposal.in_sync


@pytest.fixture
def led(tmp_path: Path) -> Led:
    led = Led(tmp_path)
    led.assume()
    return led


def test_high_watermark_is_the_least_fetch_offset_in_the_isr(led: Led) -> None:
    led.append(10)
    assert led.high_watermark == 0, "nobody has asked for anything after it yet"

    led.fetch(SECOND, 10)
    assert led.high_watermark == 0
    led.fetch(THIRD, 4)
    assert led.high_watermark == 4
    led.fetch(THIRD, 10)
    assert led.high_watermark == 10


def test_high_watermark_does_not_go_back_with_a_follower(led: Led) -> None:
    led.append(10)
    led.fetch(SECOND, 10)
    led.fetch(THIRD, 10)

    led.fetch(THIRD, 3)

    assert led.high_watermark == 10


def test_a_follower_that_stays_behind_leaves_once_the_controller_agrees(led: Led) -> None:
    led.append(10)
    led.fetch(SECOND, 10)
    led.clock.time_ms += MAX_LAG_MS + 1
    led.fetch(SECOND, 10)

    led.partition.check_lag()
    led.partition.check_lag()

    assert led.high_watermark == 0, "it counts until the controller has agreed"
    assert led.decide() == (LEADER, SECOND)
    assert led.partition.in_sync_replicas == (LEADER, SECOND)
    assert led.partition.partition_epoch == 1
    assert led.high_watermark == 10


def test_being_in_sync_is_a_matter_of_time_not_of_bytes(led: Led) -> None:
    """Under load a follower is never at the end, but at where the end was a moment ago."""
    for turn in range(10):
        led.clock.time_ms += MAX_LAG_MS // 2
        for follower in (SECOND, THIRD):
            led.fetch(follower, led.partition.log.log_end_offset - 5 if turn else 0)
        led.append(5)
    led.partition.check_lag()

    assert led.proposals.noted == []


def test_a_follower_that_has_caught_up_comes_back(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.append(10)
    led.fetch(SECOND, 10)
    assert led.high_watermark == 10, "one that is not in sync does not count"

    led.fetch(THIRD, 9)
    assert led.proposals.noted == []
    led.fetch(THIRD, 10)
    led.append(5)
    led.fetch(SECOND, 15)
    assert led.high_watermark == 10, "one on its way in counts already"

    assert led.decide() == (LEADER, SECOND, THIRD)
    led.fetch(THIRD, 15)
    assert led.high_watermark == 15


def test_alter_partition_carries_the_broker_epoch_of_each_follower(led: Led) -> None:
    """Restarted before the controller answers, one may lack what it has now (KIP-903)."""
    led.assume(isr=(LEADER, SECOND), epoch=1)

    led.partition.fetched_by(THIRD, 12, 0, 0)

    ((_, proposal),) = led.proposals.noted
    assert list(proposal.members) == [(LEADER, -1), (SECOND, -1), (THIRD, 12)]


def test_a_follower_without_the_start_of_the_epoch_does_not_come_in(led: Led) -> None:
    """It has all that is committed, but not all that the new leader had when it began."""
    led.append(10)
    led.assume(isr=(LEADER, SECOND), epoch=1)

    led.fetch(THIRD, 0)

    assert led.high_watermark == 0
    assert led.proposals.noted == []


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_proposal_that_is_turned_down_is_made_again_when_due(led: Led, code: ErrorCode) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.fetch(THIRD, 0)
    led.decide(code)
    assert led.partition.machine.in_sync.maximal == {LEADER, SECOND}

    led.fetch(THIRD, 0)

    assert led.decide() == (LEADER, SECOND, THIRD)


def test_a_proposal_on_an_old_state_counts_until_the_new_state_comes(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.fetch(THIRD, 0)
    led.decide(ErrorCode.INVALID_UPDATE_VERSION)

    led.fetch(THIRD, 0)
    assert led.proposals.noted == []
    assert led.partition.machine.in_sync.maximal == set(ALL), "it may have been stored after all"

    led.assume(isr=(LEADER, SECOND), epoch=2)
    assert led.partition.machine.in_sync.maximal == {LEADER, SECOND}


def test_a_proposal_that_was_not_answered_is_sent_again(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.fetch(THIRD, 0)
    led.decide(ErrorCode.UNKNOWN_SERVER_ERROR)

    assert led.decide() == (LEADER, SECOND, THIRD)


def test_an_answer_that_comes_after_a_new_leader_epoch_is_ignored(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.fetch(THIRD, 0)
    ((_, proposal),) = led.proposals.noted

    led.assume(isr=(LEADER,), epoch=2)
    led.partition.decided(proposal, ErrorCode.NONE, Stored(ALL, 1, 1))

    assert led.partition.in_sync_replicas == (LEADER,)


def test_a_leader_and_isr_older_than_the_committed_isr_is_ignored(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.append(5)
    led.fetch(THIRD, 5)
    led.decide()

    assert not led.assume(isr=(LEADER, SECOND), epoch=1)

    assert led.partition.in_sync_replicas == ALL
    led.fetch(SECOND, 5)
    assert led.high_watermark == 5


def test_a_controller_that_repeats_itself_leaves_a_proposal_standing(led: Led) -> None:
    led.assume(isr=(LEADER, SECOND), epoch=1)
    led.fetch(THIRD, 0)

    assert led.assume(isr=(LEADER, SECOND), epoch=1)

    assert led.decide() == ALL
    assert led.partition.in_sync_replicas == ALL


def test_nothing_is_committed_while_too_few_are_in_sync(tmp_path: Path) -> None:
    led = Led(tmp_path, min_in_sync=2, alive=(SECOND,))
    led.assume()
    led.append(10)
    codes: list[ErrorCode] = []
    led.partition.when_committed(10, codes.append)

    led.assume(isr=(LEADER,))
    assert (led.high_watermark, codes) == (0, [])
    with pytest.raises(ApiError) as refused:
        led.append(1)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS

    led.fetch(SECOND, 10)
    assert led.decide() == (LEADER, SECOND)
    assert (led.high_watermark, codes) == (10, [ErrorCode.NONE])


@pytest.mark.parametrize(("alive", "committed"), [((SECOND, THIRD), 0), ((SECOND,), 10)])
def test_a_live_replica_that_caught_up_is_waited_for_a_dead_one_is_not(
    tmp_path: Path, alive: tuple[int, ...], committed: int
) -> None:
    led = Led(tmp_path, alive=alive)
    led.assume()
    led.fetch(SECOND, 0)
    led.fetch(THIRD, 0)
    led.assume(isr=(LEADER, SECOND))

    led.append(10)
    led.fetch(SECOND, 10)

    assert led.high_watermark == committed


def test_a_follower_that_never_fetched_is_not_waited_for_after_a_machine_has_just_booted(
    led: Led,
) -> None:
    led.clock.time_ms = MAX_LAG_MS // 10
    led.assume((LEADER, SECOND), epoch=1)
    led.append(10)

    led.fetch(SECOND, 10)

    assert led.high_watermark == 10


def test_a_broker_without_a_replica_may_not_fetch_as_follower(led: Led) -> None:
    with pytest.raises(ApiError) as refused:
        led.fetch(9, 0)

    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_follower_takes_over_the_leaders_high_watermark_up_to_its_own_end(led: Led) -> None:
    led.append(10)
    led.assume(epoch=1, leader=SECOND)
    assert not led.partition.machine.in_sync.followers

    led.partition.append_from_leader(b"", 99, 0, NOW_MS)

    assert led.high_watermark == 10
