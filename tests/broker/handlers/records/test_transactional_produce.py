"""Produce inside a transaction: who vouches for a partition, and what becomes of late batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.coordinators.markers import write_markers
from broker.requests.dispatch import Dispatcher
from broker.runtime.deferred import Deferred, HangUp
from protocol.acl_types import AclOperation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.transactions import WriteTxnMarkersRequest
from protocol.records.batch import HEADER_BYTES
from tests.broker.connections import connected
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    produce_request,
    records,
    run_data_broker,
)
from tests.controller.harness import turns
from tests.support.broker_parts.allowing import allowing
from tests.support.wire import request_header

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

BEFORE_ABORTABLE, ABORTABLE, ADDS = 10, 11, 12
Batches = dict[tuple["str | UUID", int], "bytes | None"]


def batch(sequence: int = 0, *, index: int = 0, producer_id: int = 9, epoch: int = 0) -> Batches:
    """One record of a transaction."""
    data = records(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    return {(TOPIC, index): data}


def end(broker: DataBroker, *, epoch: int = 0, version: int = 0, commits: bool = True) -> int:
    """Write a marker of producer 9 to the first partition; returns the error code."""
    marker = WriteTxnMarkersRequest.Marker
    topic = marker.Topic(name=TOPIC, partition_indexes=[0])
    request = WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=9,
                producer_epoch=epoch,
                transaction_result=commits,
                topics=[topic],
                coordinator_epoch=0,
                transaction_version=version,
            )
        ]
    )
    answer = write_markers(broker.services.coordination, request)
    return answer.value.markers[0].topics[0].partitions[0].error_code


async def produce(broker: DataBroker, batches: Batches, version: int = ADDS) -> list[int]:
    answers = await broker.produce(batches, version, transactional_id="t")
    return [answer.error_code for answer in answers]


def call(broker: DataBroker, batches: Batches, version: int = ADDS, **fields: Any) -> Any:
    return broker.call(
        produce_request(batches, version, **{"transactional_id": "t", **fields}), version
    )


def test_nothing_of_a_request_without_transactional_id_is_appended(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic(count=2)
        batches = {(TOPIC, 0): records(), **batch(index=1)}

        answers = await broker.produce(batches)

        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert [answer.error_code for answer in answers] == [refused, refused]
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_request_of_two_producers_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=2)

        codes = await produce(broker, batch() | batch(index=1, producer_id=10))

        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (BEFORE_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_partition_that_was_not_added_is_refused(version: int, code: int, tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()

        codes = await produce(broker, batch(), version)

        assert codes == [code]
        assert broker.transactions.questions == [("t", 9, 0, ((TOPIC, 0),), True)]
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, ABORTABLE, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ADDS, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ADDS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ADDS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ABORTABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NETWORK_EXCEPTION, ABORTABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ABORTABLE, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ADDS, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_errors_of_the_coordinator_are_translated_by_produce_version(
    said: ErrorCode, version: int, told: ErrorCode, tmp_path: Path
) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        broker.transactions.refusal = said

        assert await produce(broker, batch(), version) == [told]

    run_data_broker(tmp_path, scenario)


def test_coordinator_is_asked_once_per_transaction_and_partition(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        broker.transactions.partitions.add((TOPIC, 0))

        codes = [await produce(broker, batch(sequence), ABORTABLE) for sequence in range(3)]

        assert codes == [[ErrorCode.NONE]] * 3
        assert len(broker.transactions.questions) == 1

        assert end(broker) == ErrorCode.NONE
        assert await produce(broker, batch(3), ABORTABLE) == [ErrorCode.NONE]
        assert len(broker.transactions.questions) == 2

    run_data_broker(tmp_path, scenario)


def test_no_coordinator_is_asked_when_verification_is_disabled(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        assert await produce(broker, batch(), ABORTABLE) == [ErrorCode.NONE]
        assert broker.transactions.questions == []

    run_data_broker(tmp_path, scenario, transaction_partition_verification_enable=False)


def test_version_2_adds_the_partition_even_when_verification_is_off(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        assert await produce(broker, batch()) == [ErrorCode.NONE]
        assert broker.transactions.questions == [("t", 9, 0, ((TOPIC, 0),), False)]

    run_data_broker(tmp_path, scenario, transaction_partition_verification_enable=False)


def test_a_verification_answered_after_the_marker_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.transactions.partitions.add((TOPIC, 0))
        broker.transactions.is_slow = True
        late = call(broker, batch(), ABORTABLE)
        assert isinstance(late, Deferred)

        assert end(broker, commits=False) == ErrorCode.NONE
        broker.transactions.answer_all()

        answer = late.value.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.INVALID_TXN_STATE
        assert not partition.log.producers.has_open_transactions

    run_data_broker(tmp_path, scenario)


def test_answer_for_the_next_transaction_outlives_the_marker_of_the_last(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        assert await produce(broker, batch()) == [ErrorCode.NONE]
        broker.transactions.is_slow = True
        early = call(broker, batch(epoch=1))

        assert end(broker, epoch=1, version=2) == ErrorCode.NONE
        broker.transactions.answer_all()

        assert early.value.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    run_data_broker(tmp_path, scenario)


def test_a_batch_awaiting_verification_is_stored_unchanged(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.transactions.is_slow = True
        dispatcher = Dispatcher(broker.services)
        async with connected(dispatcher) as wire:
            sent = batch()
            plain: Batches = {(TOPIC, 0): records(1)}
            for batches, transaction in ((sent, "t"), (plain, None)):
                request = produce_request(batches, ADDS, transactional_id=transaction)
                header = request_header(ApiKey.PRODUCE, ADDS, 1) + b"\0"
                wire.send(header + request.encode(ADDS))
                await turns()
            assert partition.log.log_end_offset == 0

            broker.transactions.answer_all()
            for _ in range(2):
                await wire.reader.readexactly(
                    int.from_bytes(await wire.reader.readexactly(4), "big")
                )

        (first, _) = partition.log.read_batches(0, 2)
        assert bytes(first)[HEADER_BYTES:] == (sent[TOPIC, 0] or b"")[HEADER_BYTES:]

    run_data_broker(tmp_path, scenario)


def test_an_unexpected_answer_of_the_coordinator_fails_the_request(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.transactions.is_slow = True
        late = call(broker, batch())
        ((_, answered),) = broker.transactions._waiting

        answered(cast("Any", "odd"))

        with pytest.raises(AttributeError):
            _ = late.value
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_abandoned_request_appends_nothing(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.transactions.is_slow = True
        call(broker, batch()).abandon()

        broker.transactions.answer_all()

        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_refusal_that_comes_late_ends_a_connection_without_acks(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        broker.transactions.is_slow = True
        broker.transactions.refusal = ErrorCode.PRODUCER_FENCED
        waiting = call(broker, batch(), acks=0)

        broker.transactions.answer_all()

        with pytest.raises(HangUp):
            _ = waiting.value

    run_data_broker(tmp_path, scenario)


def test_only_unverified_partitions_are_refused(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=3)
        broker.transactions.partitions |= {(TOPIC, 0), (TOPIC, 2)}
        batches = batch() | batch(index=1) | batch(index=2) | batch(index=7)

        codes = await produce(broker, batches, ABORTABLE)

        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.NONE, missing]

    run_data_broker(tmp_path, scenario)


def test_transaction_does_not_begin_with_a_batch_that_others_come_before(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        broker.transactions.partitions.add((TOPIC, 0))
        broker.transactions.is_slow = True
        second, first = call(broker, batch(5), ABORTABLE), call(broker, batch(4), ABORTABLE)

        broker.transactions.answer_all()

        codes = [
            each.value.responses[0].partition_responses[0].error_code for each in (second, first)
        ]
        assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.NONE]

    run_data_broker(tmp_path, scenario)


def test_version_2_begins_at_sequence_zero(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()

        assert await produce(broker, batch(3)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await produce(broker, batch(0)) == [ErrorCode.NONE]

    run_data_broker(tmp_path, scenario)


def test_a_topic_that_may_not_be_written_to_does_not_come_into_the_transaction(
    tmp_path: Path,
) -> None:
    write = AclOperation.WRITE

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        secret = await broker.create_topic("secret")
        broker.services.authorizer = allowing(
            (ResourceType.TRANSACTIONAL_ID, "t", write), (ResourceType.TOPIC, TOPIC, write)
        )
        (both,) = batch().values()
        codes = await produce(broker, {(TOPIC, 0): both, ("secret", 0): both})
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        assert [question[3] for question in broker.transactions.questions] == [((TOPIC, 0),)]
        assert secret.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)


def test_nothing_is_asked_for_a_transactional_id_that_may_not_be_used(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        partition = await broker.create_topic()
        broker.services.authorizer = allowing((ResourceType.TOPIC, TOPIC, AclOperation.WRITE))
        refused = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
        assert await produce(broker, batch()) == refused
        assert broker.transactions.questions == []
        assert partition.log.log_end_offset == 0

    run_data_broker(tmp_path, scenario)
