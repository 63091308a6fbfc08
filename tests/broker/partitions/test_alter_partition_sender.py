"""Proposals of in-sync sets on their way to the controller: one request at a time, none empty."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

from broker.partitions.alter_partition_sender import RETRY_AFTER_MS, AlterPartitionSender
from broker.replication.effects import Proposal
from broker.runtime.timers import Timers
from protocol.errors import ApiError, ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from tests.storage.produced import TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import pytest

    from broker.partitions.partition import Partition
    from broker.replication.effects import Stored

SECONDS = 60
PROPOSAL = Proposal((0, 1), leader_epoch=3, partition_epoch=7, broker_epochs=(-1, 12))


class Proposer:
    """A partition that proposes again until the controller agrees."""

    fails = 0
    """How often it raises before it hears what was decided."""

    topic, topic_id, index = "flights", TOPIC_ID, 0

    def __init__(self, proposals: AlterPartitionSender) -> None:
        self._proposals = proposals
        self.codes: list[ErrorCode] = []
        self.is_settled = asyncio.Event()

    def decided(self, proposal: Proposal, code: ErrorCode, stored: Stored | None = None) -> None:
        assert stored is not None
        if self.fails:
            self.fails -= 1
            raise ValueError("odd")
        self.codes.append(code)
        if code is ErrorCode.NONE:
            self.is_settled.set()
        else:
            self._proposals.propose(cast("Partition", self), proposal)


class SlowController:
    """Answers each request after a moment with the next code; None is no answer at all.

    An exception is raised.
    """

    def __init__(self, *codes: ErrorCode | Exception | None) -> None:
        self._codes = list(codes)
        self._under_way = 0
        self.sizes: list[int] = []
        self.members: list[tuple[int, int]] = []
        """Of all requests, with the epochs of their brokers."""

    async def ask(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.sizes.append(sum(len(topic.partitions) for topic in request.topics))
        for member in request.topics[0].partitions[0].new_isr_with_epochs:
            self.members.append((member.broker_id, member.broker_epoch))
        assert not self._under_way
        self._under_way += 1
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        self._under_way -= 1
        code = self._codes.pop(0)
        if code is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if isinstance(code, Exception):
            raise code
        answer = AlterPartitionResponse.Topic.Partition(
            partition_index=0,
            error_code=code,
            leader_id=0,
            leader_epoch=PROPOSAL.leader_epoch,
            isr=list(PROPOSAL.in_sync),
            partition_epoch=PROPOSAL.partition_epoch + 1,
        )
        topic = AlterPartitionResponse.Topic(topic_id=TOPIC_ID, partitions=[answer])
        return AlterPartitionResponse(error_code=0, topics=[topic])


def run(controller: SlowController) -> list[ErrorCode]:
    """Propose, wait until that is settled and a moment longer; returns what was decided."""

    async def scenario() -> list[ErrorCode]:
        tasks: list[asyncio.Task[Any]] = []

        def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[Any]:
            tasks.append(asyncio.get_running_loop().create_task(work, name=name))
            return tasks[-1]

        timers = Timers(asyncio.get_running_loop())
        proposals = AlterPartitionSender((0, lambda: 5), controller.ask, timers, spawn)
        partition = Proposer(proposals)
        proposals.propose(cast("Partition", partition), PROPOSAL)
        async with asyncio.timeout(SECONDS):
            await partition.is_settled.wait()
        await timers.sleep(100)
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or str(outcome) == "odd"
        return partition.codes

    return asyncio.run(scenario())


def test_a_proposal_that_failed_is_made_again_alone() -> None:
    controller = SlowController(ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
    assert controller.sizes == [1, 1]


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    controller = SlowController(None, None, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1, 1]


def test_an_unforeseen_error_is_a_reason_to_ask_again() -> None:
    controller = SlowController(ValueError("odd"), ValueError("odd"), ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1, 1]


def test_a_partition_that_fails_to_hear_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proposer, "fails", 1)
    controller = SlowController(ErrorCode.NONE, ErrorCode.NONE)

    assert run(controller) == [ErrorCode.NONE]
    assert controller.sizes == [1, 1]


def test_the_controller_hears_in_which_lives_the_members_were_seen() -> None:
    controller = SlowController(ErrorCode.NONE)

    run(controller)

    assert controller.members == [(0, -1), (1, 12)]


def test_a_controller_that_refuses_at_once_is_not_asked_without_a_pause() -> None:
    """It may be in the same process, and know of the partition less than its leader does."""
    refusals = 5
    controller = SlowController(*[ErrorCode.NOT_CONTROLLER] * refusals, ErrorCode.NONE)
    began = time.monotonic()

    run(controller)

    assert time.monotonic() - began >= refusals * RETRY_AFTER_MS / 1000
