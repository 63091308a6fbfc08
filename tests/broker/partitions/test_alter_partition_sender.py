"""Proposals of in-sync sets on their way to the controller: one request at a time, none empty."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

from broker.partitions.alter_partition_sender import (
    FIRST_PAUSE_MS,
    LONGEST_PAUSE_MS,
    AlterPartitionSender,
)
from broker.replication.effects import Proposal
from broker.runtime.supervision import ONE_TIME
from broker.runtime.timers import Timers
from protocol.errors import ApiError, ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from tests.storage.produced import TOPIC_ID
from tests.support.broker_parts.supervised import end, supervision
from tests.support.broker_parts.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from collections import Counter

    import pytest

    from broker.partitions.partition import Partition
    from broker.replication.effects import Stored

ANSWER_MS = 10
MINUTE_MS = 60_000
PROPOSAL = Proposal((0, 1), leader_epoch=3, partition_epoch=7, broker_epochs=(-1, 12))


class Proposer:
    """A partition that proposes again until the controller agrees."""

    fails = 0
    """Number of errors raised before the decision arrives."""

    topic, topic_id = "flights", TOPIC_ID

    def __init__(self, proposals: AlterPartitionSender, index: int = 0) -> None:
        self._proposals = proposals
        self.index = index
        self.codes: list[ErrorCode] = []

    def decided(self, proposal: Proposal, code: ErrorCode, stored: Stored | None = None) -> None:
        assert stored is not None
        if self.fails:
            self.fails -= 1
            raise ValueError("odd")
        self.codes.append(code)
        if code is not ErrorCode.NONE:
            self._proposals.propose(cast("Partition", self), proposal)


class SlowController:
    """Answers each request after ANSWER_MS with the next code; None is no answer at all.

    An exception is raised.
    """

    def __init__(self, *codes: int | BaseException | None) -> None:
        self._codes = list(codes)
        self._under_way = self.most_at_once = 0
        self.sizes: list[int] = []
        self.asked_ms: list[int] = []
        """Times of the requests, since the first one."""
        self.members: list[tuple[int, int]] = []
        """Members in all requests, with the epochs of their brokers."""

    async def ask(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.asked_ms.append(LoopClock().monotonic_ms())
        self.sizes.append(sum(len(topic.partitions) for topic in request.topics))
        for member in request.topics[0].partitions[0].new_isr_with_epochs:
            self.members.append((member.broker_id, member.broker_epoch))
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        await Timers(asyncio.get_running_loop()).sleep(ANSWER_MS)
        self._under_way -= 1
        code = self._codes.pop(0)
        if code is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if isinstance(code, BaseException):
            raise code
        answers = [
            AlterPartitionResponse.Topic.Partition(
                partition_index=one.partition_index,
                error_code=code,
                leader_id=0,
                leader_epoch=PROPOSAL.leader_epoch,
                isr=list(PROPOSAL.in_sync),
                partition_epoch=PROPOSAL.partition_epoch + 1,
            )
            for one in request.topics[0].partitions
        ]
        topic = AlterPartitionResponse.Topic(topic_id=TOPIC_ID, partitions=answers)
        return AlterPartitionResponse(error_code=0, topics=[topic])

    @property
    def pauses_ms(self) -> list[int]:
        """Return the times from each answer, or failure, to the next request."""
        asked = self.asked_ms
        return [after - before - ANSWER_MS for before, after in pairwise(asked)]


class Outcome(NamedTuple):
    """Outcome of proposals made by all partitions at once."""

    codes: list[list[ErrorCode]]
    """Error codes received, by partition."""
    failures: Counter[str]
    """Unforeseen errors."""


def propose(controller: SlowController, partitions: int) -> Outcome:
    """Make partitions propose, and wait until nothing more can come."""

    async def scenario() -> Outcome:
        timers = Timers(asyncio.get_running_loop())
        supervised = supervision(timers)
        timers.on_failure = supervised.note
        proposals = AlterPartitionSender((0, lambda: 5), controller.ask, timers, supervised.spawn)
        proposers = [Proposer(proposals, index) for index in range(partitions)]
        for one in proposers:
            proposals.propose(cast("Partition", one), PROPOSAL)
        await timers.sleep(MINUTE_MS)
        await end(supervised)
        assert controller.most_at_once == 1
        return Outcome([one.codes for one in proposers], supervised.failures)

    return run_in_virtual_time(scenario())


def run(controller: SlowController) -> list[ErrorCode]:
    """Make one partition propose; return the answers it got."""
    ((codes,), _) = propose(controller, 1)
    return codes


def test_a_proposal_that_failed_is_made_again_alone() -> None:
    controller = SlowController(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert controller.sizes == [1, 1]


def test_an_error_that_only_a_newer_controller_knows_is_an_answer() -> None:
    controller = SlowController(9_999, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    controller = SlowController(None, None, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1, 1]


def test_an_unforeseen_error_is_a_reason_to_ask_again() -> None:
    controller = SlowController(ValueError("odd"), ValueError("odd"), ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1, 1]


def test_a_partition_whose_callback_raises_gets_its_answer_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Proposer, "fails", 1)
    controller = SlowController(ErrorCode.NONE, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1]


def test_alter_partition_requests_carry_broker_epochs() -> None:
    controller = SlowController(ErrorCode.NONE)

    run(controller)

    assert controller.members == [(0, -1), (1, 12)]


def test_a_controller_that_refuses_at_once_is_not_asked_without_a_pause() -> None:
    """It may run in the same process, and know less of the partition than its leader."""
    refusals = 5
    controller = SlowController(*[ErrorCode.NOT_CONTROLLER] * refusals, ErrorCode.NONE)

    run(controller)

    assert controller.pauses_ms == [FIRST_PAUSE_MS] * refusals


def test_the_pauses_grow_to_a_limit_while_no_controller_answers() -> None:
    controller = SlowController(*[None] * 7, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE)

    run(controller)

    grown = [FIRST_PAUSE_MS * doubled for doubled in (1, 2, 4, 8, 16)]
    assert controller.pauses_ms == [*grown, LONGEST_PAUSE_MS, LONGEST_PAUSE_MS, FIRST_PAUSE_MS]


def test_a_controller_that_does_not_answer_is_logged_once_and_so_is_its_return(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "broker.partitions.alter_partition_sender")
    refused = ErrorCode.UNKNOWN_SERVER_ERROR

    run(SlowController(*[None] * 9, refused, refused, *[None] * 3, ErrorCode.NONE))

    failed, resumed = "AlterPartition failed, retrying", "AlterPartition is answered again"
    told = [record.getMessage() for record in caplog.records]
    assert [line.split(":")[0] for line in told] == [failed, resumed, failed, resumed]
    assert "NOT_CONTROLLER" in told[0]


def test_each_partition_whose_callback_raises_has_its_error_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Proposer, "fails", 1)
    controller = SlowController(ErrorCode.NONE, ErrorCode.NONE)

    codes, failures = propose(controller, 3)

    assert codes == [[ErrorCode.NONE]] * 3
    assert failures == {"in-sync replicas": 3}
    assert "flights-0" in caplog.text


def test_an_ask_that_is_cancelled_is_noted_and_made_again() -> None:
    """Unlike at the stop, when its own task is cancelled, its wait was."""
    controller = SlowController(asyncio.CancelledError(), ErrorCode.NONE)

    codes, failures = propose(controller, 2)

    assert codes == [[ErrorCode.NONE]] * 2
    assert controller.sizes == [2, 2]
    assert failures == {ONE_TIME: 1}


def test_nothing_is_asked_once_the_broker_stops() -> None:
    controller = SlowController(*[ErrorCode.NONE] * 2)

    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        supervised = supervision(timers)
        proposals = AlterPartitionSender((0, lambda: 5), controller.ask, timers, supervised.spawn)
        proposals.propose(cast("Partition", Proposer(proposals)), PROPOSAL)
        await timers.sleep(ANSWER_MS / 2)

        timers.close()
        await end(supervised)

        await timers.sleep(MINUTE_MS)
        assert controller.sizes == [1]

    run_in_virtual_time(scenario())
