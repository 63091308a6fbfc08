"""A follower that asks for its leader's log start, and changes before the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.list_offsets import ListOffsetsRequest
from protocol.messages.stop_replica import StopReplicaRequest
from tests.broker.replica_fetchers.nodes import TOPIC, Ensemble, Node, run_ensemble
from tests.storage.produced import TOPIC_ID

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request, Response

NEXT_ID = UUID(int=6)
DELETION = StopReplicaRequest.TopicState.PartitionState(
    partition_index=0, leader_epoch=-2, delete_partition=True
)


class HeldAnswers:
    """Holds back what a node answers to ListOffsets, and notes which Fetch requests it gets."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.is_asked = asyncio.Event()
        self.is_released = asyncio.Event()
        self.fetches: list[FetchRequest] = []

    async def __call__(self, request: Request, version: int) -> Response:
        if isinstance(request, ListOffsetsRequest):
            self.is_asked.set()
            await self.is_released.wait()
        if isinstance(request, FetchRequest):
            self.fetches.append(request)
        return await Node.answer(self._node, request, version)


def lead(node: Node, leader: int, topic_id: UUID, index: int = 0) -> None:
    state = LeaderAndIsrPartitionState(
        partition_index=index,
        controller_epoch=1,
        leader=leader,
        leader_epoch=0,
        isr=[leader],
        partition_epoch=0,
        replicas=[0, 1, 2] if topic_id == TOPIC_ID else [leader],
        is_new=True,
    )
    assert node.replicas.lead_or_follow(TOPIC, topic_id, state) is ErrorCode.NONE


async def let_stray(nodes: Ensemble) -> HeldAnswers:
    """Broker 2 follows a leader whose log begins after its end, and asks where.

    It follows another partition there as well, so that it goes on fetching whatever comes.
    """
    held = HeldAnswers(nodes[0])
    nodes[0].answer = held  # type: ignore[method-assign]
    for node in (nodes[0], nodes[2]):
        lead(node, 0, TOPIC_ID, index=1)
    lead(nodes[0], 0, TOPIC_ID)
    nodes[0].partition.log.truncate_fully_and_start_at(10)
    lead(nodes[2], 0, TOPIC_ID)
    await held.is_asked.wait()
    return held


def test_a_fetch_answer_for_a_deleted_log_does_not_change_its_successor(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        held = await let_stray(nodes)
        assert nodes[2].replicas.stop(TOPIC, DELETION) is ErrorCode.NONE
        lead(nodes[2], 2, NEXT_ID)
        nodes[2].append(5, value=b"of the next topic")
        before = nodes[2].stored

        held.fetches.clear()
        held.is_released.set()
        await nodes.until(lambda: len(held.fetches) > 1)
        nodes[2].partition.log.release()  # read what lies on the disk

        assert nodes[2].stored == before
        assert nodes[2].offsets == (5, 5)

    run_ensemble(tmp_path, scenario)


def test_a_replica_that_left_while_it_asked_is_not_fetched_again(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        held = await let_stray(nodes)
        for node in (nodes[2], nodes[0]):
            assert node.replicas.stop(TOPIC, DELETION) is ErrorCode.NONE

        held.fetches.clear()
        held.is_released.set()  # the answer is UNKNOWN_TOPIC_OR_PARTITION
        await nodes.until(lambda: len(held.fetches) > 5)

        listed = [
            one for fetch in held.fetches for topic in fetch.topics for one in topic.partitions
        ]
        assert [one.partition for one in listed if one.partition == 0] == []

    run_ensemble(tmp_path, scenario)
