"""Markers in many partitions, and producers of many, give way to others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import broker.handlers.transactions.describe_producers
import broker.handlers.transactions.write_txn_markers  # noqa: F401  (the handlers register themselves)
from protocol.errors import ErrorCode
from protocol.messages.producers import DescribeProducersRequest
from protocol.messages.transactions import WriteTxnMarkersRequest
from tests.broker.coordinators.transaction_broker import (
    TransactionBroker,
    run_transaction_broker,
)
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.broker.handlers.test_long_admin_requests import turns_of_others
from tests.broker.handlers.topics.test_create_topics import creation, new

if TYPE_CHECKING:
    from pathlib import Path

MANY = 60


def test_markers_of_many_partitions_are_written_in_slices(tmp_path: Path) -> None:
    kind = WriteTxnMarkersRequest.Marker
    marker = kind(
        producer_id=7,
        producer_epoch=0,
        transaction_result=True,
        topics=[kind.Topic(name=TOPIC, partition_indexes=[*range(MANY + 1), 0])],
        coordinator_epoch=0,
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    async def scenario(broker: TransactionBroker) -> None:
        await broker.ask(creation(new(TOPIC, MANY)), 7)
        assert await turns_of_others(broker, request, 1) >= MANY
        assert [broker.replicas.require(TOPIC, n).log.log_end_offset for n in range(MANY)] == (
            [1] * MANY
        )
        (topic,) = (await broker.ask(request, 1)).markers[0].topics
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [each.error_code for each in topic.partitions] == [0] * MANY + [missing]

    run_transaction_broker(tmp_path, scenario)


def test_producers_of_many_partitions_are_described_in_slices_and_once(tmp_path: Path) -> None:
    topics = [DescribeProducersRequest.Topic(name=TOPIC, partition_indexes=[*range(MANY), 0, 0])]
    request = DescribeProducersRequest(topics=[*topics, *topics])

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=MANY)
        batch = records(1, producer_id=7, producer_epoch=0, base_sequence=0)
        await broker.ask(produce_request({(TOPIC, 0): batch}), 12)
        assert await turns_of_others(broker, request, 0) >= MANY
        (topic,) = (await broker.ask(request, 0)).topics
        assert [each.partition_index for each in topic.partitions] == list(range(MANY))
        assert [len(each.active_producers) for each in topic.partitions] == [1] + [0] * (MANY - 1)

    run_data_broker(tmp_path, scenario)
