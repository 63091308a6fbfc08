"""A broker without sockets that coordinates transactions; metadata in memory, logs on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from broker.coordinators.internal_topics import TRANSACTION_KEY
from broker.coordinators.marker_sender import MarkerSender
from broker.coordinators.peers import Peers
from broker.coordinators.transactions import TransactionCoordinators, TransactionRules
from broker.handlers import all_handlers
from config.broker import BrokerConfig
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import DescribeTransactionsRequest
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    WriteTxnMarkersResponse,
)
from tests.broker.coordinators.group_broker import GroupBroker
from tests.broker.coordinators.loading import until_loaded
from tests.broker.handlers.one_broker import BROKER_ID

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from broker.partitions.partition import Partition
    from coordinator.transactions.states import TransactionState
    from coordinator.transactions.transaction import Transaction
    from protocol.messages.transactions import WriteTxnMarkersRequest

Answered = Callable[[Any], None]
assert all_handlers.MODULES, "they register themselves when they are imported"

PRODUCER = "payments"
FLIGHTS = ("flights", 0)
HOTELS = ("hotels", 0)
Marker = WriteTxnMarkersResponse.Marker
TURNS = 50
"""Turns of the event loop after which what was to be done soon is done."""


class Switchboard:
    """The way to leaders, which a test can interrupt."""

    def __init__(self, broker: TransactionBroker) -> None:
        self._peers = Peers(broker.services.coordination)
        self.other: int | None = None
        """The broker that coordinates all, instead of this one."""
        self.asked: list[tuple[AddPartitionsToTxnRequest, Answered]] = []
        self.is_leaderless = False
        self.is_holding = False
        self.held: list[tuple[WriteTxnMarkersRequest, Answered]] = []

    @property
    def look_ups(self) -> int:
        return self._peers.look_ups

    def leader(self, topic: str, partition: int, since: int) -> int | None:
        return -1 if self.is_leaderless else self._peers.leader(topic, partition, since)

    def partition_count(self) -> int:
        return self._peers.partition_count()

    def other_coordinator(self, partition: int) -> int | None:
        return self._peers.other_coordinator(partition) if self.other is None else self.other

    def add_partitions(
        self, broker_id: int, request: AddPartitionsToTxnRequest, answered: Answered
    ) -> None:
        assert broker_id == self.other
        self.asked.append((request, answered))

    def close(self) -> None:
        self._peers.close()

    def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, answered: Answered
    ) -> None:
        if self.is_holding:
            self.held.append((request, answered))
        else:
            self._peers.write_markers(broker_id, request, answered)

    def write_now(self, request: WriteTxnMarkersRequest, answered: Answered) -> None:
        """Write markers on this broker that another would send it."""
        self._peers.write_markers(BROKER_ID, request, answered)


class TransactionBroker(GroupBroker):
    """`GroupBroker` with transaction coordinators."""

    def __init__(self, directory: Path, config: BrokerConfig) -> None:
        super().__init__(directory, config)
        self.steps: list[str] = []
        self.replicas._listeners.remove(self.transactions.partition_changed)
        self.begin_anew()
        self.replicas.on_leadership_change(self._partition_changed)

    @property
    def transactions(self) -> TransactionCoordinators:
        return self.services.transactions

    def begin_anew(self) -> None:
        """Replace the coordinators by new ones without state."""
        self.switchboard = Switchboard(self)
        self.services.transactions = self.new_coordinators()

    def new_coordinators(self) -> TransactionCoordinators:
        board = self.switchboard
        self.sender = MarkerSender(board, self.clock, self.timers, self.steps.append)
        coordinators = TransactionCoordinators(
            TransactionRules(self.config, self.services.features),
            self.foundation.machine.background,
            self.producer_ids,
            self.sender,
            board,
        )
        coordinators.step_reached = self.steps.append
        return coordinators

    def _partition_changed(self, partition: Partition, is_leader: bool) -> None:
        self.transactions.partition_changed(partition, is_leader)

    async def restart_coordinators(self, *, is_metadata_complete: bool = True) -> None:
        """Forget all that is in memory, and load it from the log."""
        self.transactions.stop()
        self.begin_anew()
        for partition in self.replicas:
            self.transactions.partition_changed(partition, partition.is_leader)
        await until_loaded(self.transactions)
        if is_metadata_complete:
            self.sender.start()
        await self.turn()

    async def turn(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)  # noqa: TID251

    async def wait_ms(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)  # noqa: TID251

    async def find_transaction_coordinator(self) -> Any:
        return await self.ask(FindCoordinatorRequest(key=PRODUCER, key_type=TRANSACTION_KEY), 3)

    async def initialise(self, version: int = 5, **fields: Any) -> Any:
        values = {"transactional_id": PRODUCER, "transaction_timeout_ms": 60_000, **fields}
        return await self.ask(InitProducerIdRequest(**values), version)

    async def add(
        self, producer: tuple[int, int], *partitions: tuple[str, int], version: int = 3
    ) -> dict[tuple[str, int], int]:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=PRODUCER,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )
        answer = await self.ask(request, version)
        return {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }

    async def end(self, producer: tuple[int, int], *, commit: bool = True, version: int = 3) -> Any:
        request = EndTxnRequest(
            transactional_id=PRODUCER,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return await self.ask(request, version)

    async def describe(self, transactional_id: str = PRODUCER) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        return (await self.ask(request, 0)).transaction_states[0]

    def known(self, transactional_id: str = PRODUCER) -> Transaction | None:
        return self.transactions.shard_for(transactional_id).transactions.find(transactional_id)


def run_transaction_broker(
    directory: Path,
    scenario: Callable[[TransactionBroker], Coroutine[None, None, None]],
    **keys: Any,
) -> None:
    """Run a scenario on a broker on which nothing has been coordinated yet."""
    options: dict[str, Any] = {
        "broker_id": BROKER_ID,
        "group_initial_rebalance_delay_ms": 0,
        "offsets_topic_num_partitions": 4,
        "transaction_state_log_num_partitions": 4,
        **keys,
    }

    async def main() -> None:
        started = TransactionBroker(directory, BrokerConfig(**options))
        await started.start()
        started.sender.start()
        try:
            await scenario(started)
        finally:
            started.transactions.stop()
            started.groups.stop()
            await started.stop()

    asyncio.run(main())


async def prepared(broker: TransactionBroker) -> tuple[int, int]:
    """Two topics, a coordinator, and a producer."""
    await broker.find_coordinator()
    await broker.find_transaction_coordinator()
    await broker.create_topic("flights")
    await broker.create_topic("hotels")
    return await begun(broker)


async def begun(broker: TransactionBroker) -> tuple[int, int]:
    told = await broker.initialise()
    assert told.error_code == ErrorCode.NONE
    return told.producer_id, told.producer_epoch


def refusal(
    request: WriteTxnMarkersRequest, code: int, but_for: str | None = None
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            Marker(
                producer_id=marker.producer_id,
                topics=[
                    Marker.Topic(
                        name=topic.name,
                        partitions=[
                            Marker.Topic.Partition(
                                partition_index=index,
                                error_code=ErrorCode.NONE if topic.name == but_for else code,
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


async def wait_for(broker: TransactionBroker, state: TransactionState) -> None:
    for _ in range(3000):  # a minute
        known = broker.known()
        if known is not None and known.state is state:
            return
        await broker.wait_ms(20)
    pytest.fail(f"{broker.known()} does not become {state}")
