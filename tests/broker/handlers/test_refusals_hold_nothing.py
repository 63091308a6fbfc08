"""Refused requests are gone with their answers: errors and frames that hold each other keep none.

What such a garbage cycle holds is not only the error, but the connection, and its buffer.
"""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import broker.handlers.topics.create_partitions
import broker.handlers.topics.create_topics
import broker.handlers.topics.reassignments  # noqa: F401  (the handlers register themselves)
from broker.runtime.deferred import Deferred, HangUp
from protocol.errors import ApiError, ErrorCode
from protocol.messages.reassignment import AlterPartitionReassignmentsRequest
from protocol.messages.transactions import EndTxnRequest
from protocol.records.compression import Codec
from protocol.schema import Message
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
from tests.broker.handlers.topics.test_create_topics import creation, growth, new

if TYPE_CHECKING:
    from pathlib import Path

    from protocol.schema import Request
    from tests.broker.handlers.one_broker import OneBroker

ROUNDS = 5


def produced(batch: bytes, acks: int = 1) -> Any:
    return produce_request({(TOPIC, 0): batch, (TOPIC, 1): batch}, 12, acks)


def damaged(position: int, **fields: Any) -> bytes:
    batch = bytearray(records(3, **fields))
    batch[position] ^= 0x7F
    return bytes(batch)


def moved(topic: str) -> AlterPartitionReassignmentsRequest:
    kind = AlterPartitionReassignmentsRequest.Topic
    partition = kind.Partition(partition_index=0, replicas=[7])
    return AlterPartitionReassignmentsRequest(
        timeout_ms=1000, topics=[kind(name=topic, partitions=[partition])]
    )


CASES: dict[str, tuple[Request, int]] = {
    "acks": (produced(records(1), acks=7), 12),
    "checksum": (produced(damaged(-1)), 12),
    "records": (produced(records(1) * 2), 12),
    "codec": (produced(damaged(22)), 12),
    "late": (produced(records(1, timestamp=10**15)), 12),
    "zstd": (produced(damaged(70, codec=Codec.ZSTD)), 12),
    "unacknowledged": (produced(damaged(-1), acks=0), 12),
    "topic": (produce_request({("ghost", 0): records(1)}), 12),
    "config": (creation(new("a", retention_ms="x"), new("b", cleanup_policy="x")), 7),
    "name": (creation(new("a b"), new(TOPIC)), 7),
    "growth": (growth("ghost", 5), 3),
    "less": (growth(TOPIC, 1), 3),
    "reassignment": (moved(TOPIC), 1),
    "reassigned ghost": (moved("ghost"), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_request_is_freed_with_its_answer(case: str, tmp_path: Path) -> None:
    request, version = CASES[case]

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=2)
        await ask(broker, request, version)
        assert await kept(broker, request, version) == {}

    run_data_broker(tmp_path, scenario)


def test_batch_out_of_sequence_is_freed_with_its_answer(tmp_path: Path) -> None:
    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic(count=2)
        first, too_late = (
            produced(records(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
            for sequence in (0, 5)
        )
        await ask(broker, first, 12)
        assert await kept(broker, too_late, 12) == {}

    run_data_broker(tmp_path, scenario)


def test_end_of_transaction_without_coordinator_is_freed_with_its_answer(tmp_path: Path) -> None:
    request = EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0, committed=True)

    async def scenario(broker: TransactionBroker) -> None:
        refused = await broker.ask(request, 3)
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert await kept(broker, request, 3) == {}

    run_transaction_broker(tmp_path, scenario)


async def kept(broker: OneBroker, request: Request, version: int) -> Counter[str]:
    """Count the objects of a few requests that only the garbage collector could free, by type."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(ROUNDS):
            await ask(broker, request, version)
        gc.collect()
        garbage = list(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    types = (Message, ApiError, Deferred, memoryview)
    return Counter(type(one).__name__ for one in garbage if isinstance(one, types))


async def ask(broker: OneBroker, request: Request, version: int) -> None:
    with contextlib.suppress(HangUp):
        await broker.ask(request, version)
