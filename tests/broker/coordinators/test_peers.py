"""Requests of coordinators to other brokers: their destination and their timeout."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from broker.coordinators.peers import DELETED_KEPT_MS, Peers
from broker.network.links import LinkError
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from controller.topics.topic_names import TRANSACTION_STATE_TOPIC
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from protocol.uuids import ZERO_UUID
from tests.support.broker_parts.services import parts_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import pytest

    from broker.runtime.timers import Cancellable
    from protocol.schema import Request, Response

HERE, THERE = 0, 1


class SlowLink:
    """Link that answers on demand, or never."""

    def __init__(self) -> None:
        self.asked: list[tuple[Request, int]] = []
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    async def ask(self, request: Request, version: int) -> Response:
        self.asked.append((request, version))
        return await self.answer

    def close(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(LinkError("hung up"))


class SlowLinks(dict[tuple[int, str], SlowLink]):
    """Links to other brokers, by broker and purpose."""

    def link(self, broker_id: int, purpose: str) -> SlowLink:
        return self.setdefault((broker_id, purpose), SlowLink())


class RecordedTimers(Timers):
    """Notes what is to be done later, for the test to do it early."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.scheduled: list[tuple[float, Callable[[], object]]] = []

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> Cancellable:
        self.scheduled.append((delay_ms, callback))
        return super().schedule(delay_ms, callback)


class AskingBroker:
    """A broker's parts, of which those are at work that ask other brokers."""

    def __init__(self) -> None:
        self.links = SlowLinks()
        self.tasks: list[asyncio.Task[None]] = []
        self.timers = RecordedTimers()
        parts = parts_in_memory(BrokerConfig(broker_id=HERE))
        self.metadata = parts.services.metadata
        self.peers = Peers(
            dataclasses.replace(
                parts.services.coordination,
                links=self.links,
                timers=self.timers,
                spawn=self.spawn,
            )
        )

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work, name=name))

    def tell(self, *alive: int, leader: int = THERE) -> None:
        """Set the live brokers, and the coordinator of all transactions, in the metadata."""
        state = UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=0,
            isr=[leader],
            zk_version=0,
            replicas=[HERE, THERE],
        )
        live = UpdateMetadataRequest.LiveBroker
        self.metadata.update(
            UpdateMetadataRequest(
                controller_id=HERE,
                controller_epoch=1,
                live_brokers=[live(id=one, endpoints=[]) for one in alive],
                topic_states=[
                    UpdateMetadataRequest.TopicState(
                        topic_name=TRANSACTION_STATE_TOPIC,
                        topic_id=ZERO_UUID,
                        partition_states=[state],
                    )
                ],
            )
        )

    async def settled(self) -> None:
        await asyncio.gather(*self.tasks)


def test_other_brokers_are_asked_over_a_link_for_each_purpose() -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        broker.tell(HERE, THERE)
        told: list[object] = []
        broker.peers.write_markers(THERE, WriteTxnMarkersRequest(markers=[]), told.append)
        broker.peers.add_partitions(THERE, AddPartitionsToTxnRequest(), told.append)
        await asyncio.sleep(0)  # noqa: TID251
        markers, additions = broker.links.values()
        markers.answer.set_result(WriteTxnMarkersResponse(markers=[]))
        additions.answer.set_result(AddPartitionsToTxnResponse())
        await broker.settled()

        assert [type(one) for one in told] == [WriteTxnMarkersResponse, AddPartitionsToTxnResponse]
        assert [version for link in broker.links.values() for _, version in link.asked] == [1, 5]

    asyncio.run(scenario())


def test_markers_to_a_broker_that_left_the_cluster_are_answered_at_once() -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        broker.tell(HERE, THERE)
        told: list[object] = []
        broker.peers.write_markers(THERE, WriteTxnMarkersRequest(markers=[]), told.append)
        await asyncio.sleep(0)  # noqa: TID251

        broker.tell(HERE, leader=HERE)
        await broker.settled()

        assert told == [None]

    asyncio.run(scenario())


def test_an_unforeseen_error_of_a_link_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        broker.tell(HERE, THERE)
        told: list[object] = []
        broker.peers.add_partitions(THERE, AddPartitionsToTxnRequest(), told.append)
        await asyncio.sleep(0)  # noqa: TID251
        (link,) = broker.links.values()
        link.answer.set_exception(ValueError("what is this"))
        await broker.settled()

        assert told == [None]
        assert "what is this" in caplog.text

    asyncio.run(scenario())


def test_a_wait_for_a_link_that_is_cancelled_is_no_answer() -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        broker.tell(HERE, THERE)
        told: list[object] = []
        broker.peers.add_partitions(THERE, AddPartitionsToTxnRequest(), told.append)
        await asyncio.sleep(0)  # noqa: TID251
        (link,) = broker.links.values()
        link.answer.cancel()
        await asyncio.wait(broker.tasks)

        assert told == [None]
        assert broker.tasks[0].cancelled()

    asyncio.run(scenario())


def test_coordinator_is_another_broker_only_if_that_one_leads() -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        assert broker.peers.other_coordinator(0) is None
        for leader, other in [(THERE, THERE), (HERE, None), (-1, None)]:
            broker.tell(HERE, THERE, leader=leader)
            assert broker.peers.other_coordinator(0) == other

    asyncio.run(scenario())


def test_a_partition_counts_as_deleted_only_for_requests_before_the_look_up() -> None:
    """The topic may have been recreated for later requests."""

    async def scenario() -> None:
        broker = AskingBroker()
        peers = broker.peers
        early = peers.look_ups
        assert peers.leader("flights", 0, early) == -1
        await broker.settled()
        late = peers.look_ups

        assert peers.leader("flights", 0, early) is None
        assert peers.leader("flights", 0, early) is None
        assert len(broker.tasks) == 1

        assert peers.leader("flights", 0, late) == -1
        await broker.settled()
        assert len(broker.tasks) == 2
        assert peers.leader("flights", 0, late) is None

    asyncio.run(scenario())


def test_look_ups_of_deleted_partitions_expire() -> None:
    async def scenario() -> None:
        broker = AskingBroker()
        for partition in range(100):
            assert broker.peers.leader("flights", partition, 0) == -1
        await broker.settled()
        assert broker.peers.leader("flights", 1, 0) is None

        for delay_ms, callback in broker.timers.scheduled:
            assert delay_ms == DELETED_KEPT_MS
            callback()

        assert not broker.peers._deleted
        assert broker.peers.leader("flights", 1, 0) == -1
        await broker.settled()

    asyncio.run(scenario())
