"""Carries leaders' proposals for in-sync sets to the controller (AlterPartition, KIP-497).

One request is under way at a time; proposals made meanwhile go together into the next one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from broker.replication.effects import Stored
from protocol.errors import ApiError, ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine
    from uuid import UUID

    from broker.partitions.partition import Partition
    from broker.replication.effects import Proposal
    from broker.runtime.timers import Timers

logger = logging.getLogger(__name__)

FIRST_PAUSE_MS = 50
"""Pause before a retry with the controller, or its successor."""
LONGEST_PAUSE_MS = 1_000
"""Longest pause: it doubles up to this without an answer, and starts over after one."""

RequestTopic = AlterPartitionRequest.Topic
RequestPartition = RequestTopic.Partition
Member = RequestPartition.NewIsrWithEpoch
Answered = AlterPartitionResponse.Topic.Partition


class AlterPartitionSender:
    """`InSyncChanges` by requests to the broker that is controller."""

    def __init__(
        self,
        broker: tuple[int, Callable[[], int]],
        ask: Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]],
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
    ) -> None:
        """`broker` is this broker's id and epoch; `ask` raises ApiError without an answer."""
        self._broker_id, self._broker_epoch = broker
        self._ask = ask
        self._timers = timers
        self._spawn = spawn
        self._waiting: dict[Partition, Proposal] = {}
        self._is_asking = False
        self._pause_ms = FIRST_PAUSE_MS
        self._is_unanswered = False
        """So that a controller that does not answer is logged once, not at each attempt."""

    def propose(self, partition: Partition, proposal: Proposal) -> None:
        """Ask the controller soon; a later proposal for the partition replaces this one."""
        self._waiting[partition] = proposal
        if not self._is_asking:
            self._is_asking = True
            self._timers.soon(self._start)

    def _start(self) -> None:
        self._spawn(self._ask_controller(), "in-sync replicas")

    async def _ask_controller(self) -> None:
        asked, self._waiting = self._waiting, {}
        undecided = asked
        try:
            response = await self._ask(self._request(asked))
            if response.error_code:
                raise ApiError(ErrorCode(response.error_code))
        except ApiError as error:
            self._note_silence(error)
        else:
            self._note_answer()
            undecided = self._tell(asked, response)
        finally:  # in any case, cancellation too: undecided proposals are sent again
            self._rest(undecided)  # who proposes again at once waits, as all do

    def _rest(self, undecided: dict[Partition, Proposal]) -> None:
        """After a pause, send these and the proposals made meanwhile, if there are any."""
        self._waiting = undecided | self._waiting
        self._is_asking = bool(self._waiting) and not self._timers.is_closed
        if self._is_asking:
            self._timers.schedule(self._pause_ms, self._start)
            self._pause_ms = min(2 * self._pause_ms, LONGEST_PAUSE_MS)

    def _note_silence(self, error: ApiError) -> None:
        if not self._is_unanswered:
            logger.warning("AlterPartition failed, retrying: %s", error)
            self._is_unanswered = True

    def _note_answer(self) -> None:
        self._pause_ms = FIRST_PAUSE_MS
        if self._is_unanswered:
            logger.info("AlterPartition is answered again")
            self._is_unanswered = False

    def _request(self, asked: dict[Partition, Proposal]) -> AlterPartitionRequest:
        topics: dict[str, AlterPartitionRequest.Topic] = {}
        for partition, proposal in asked.items():
            topic = topics.get(partition.topic)
            if topic is None:
                topic = topics[partition.topic] = RequestTopic(
                    topic_name=partition.topic, topic_id=partition.topic_id, partitions=[]
                )
            topic.partitions.append(
                RequestPartition(
                    partition_index=partition.index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr=list(proposal.in_sync),
                    new_isr_with_epochs=[
                        Member(broker_id=one, broker_epoch=epoch) for one, epoch in proposal.members
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=list(topics.values()),
        )

    def _tell(
        self, asked: dict[Partition, Proposal], response: AlterPartitionResponse
    ) -> dict[Partition, Proposal]:
        """Pass the decisions to the partitions; return those that failed to take theirs.

        The errors go to `Timers.on_failure`, one by one.
        """
        answers: dict[tuple[UUID, int], Answered] = {
            (topic.topic_id, answer.partition_index): answer
            for topic in response.topics
            for answer in topic.partitions
        }
        undecided: dict[Partition, Proposal] = {}
        for partition, proposal in asked.items():
            try:
                _decide(partition, proposal, answers.get((partition.topic_id, partition.index)))
            except Exception as error:  # noqa: BLE001 - reported
                undecided[partition] = proposal
                error.add_note(f"of {partition.topic}-{partition.index}")
                self._timers.on_failure("in-sync replicas", error)
        return undecided


def _decide(partition: Partition, proposal: Proposal, answer: Answered | None) -> None:
    if answer is None:
        partition.decided(proposal, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    stored = Stored(tuple(answer.isr), answer.leader_epoch, answer.partition_epoch)
    partition.decided(proposal, ErrorCode(answer.error_code), stored)
