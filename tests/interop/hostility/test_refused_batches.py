"""Batches that no client library would send: each is answered with Apache Kafka's code.

With AGAINST=apache these tests ask Apache Kafka itself, which is where the codes come from.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.interop.conftest import against_apache
from tests.protocol.records.damage import GOOD, KAFKAS, OURS
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.brokers.broker_process import BrokerProcess

PRODUCE = 0
VERSION = 8
"""The first whose answer names single records."""

Part = ProduceResponse.Response.PartitionResponse


def ask(port: int, topic: str, records: bytes | bytearray, version: int = VERSION) -> Part:
    """Produce to partition 0 and return its part of the answer."""
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            ProduceRequest.TopicData(
                name=topic,
                partition_data=[ProduceRequest.TopicData.PartitionData(index=0, records=records)],
            )
        ],
    )
    with RawConnection.open(port) as connection:
        answer = connection.ask(request_header(PRODUCE, version) + request.encode(version))
    correlation_id = struct.calcsize(">i")
    response = ProduceResponse.decode(version, memoryview(answer)[correlation_id:])
    return response.responses[0].partition_responses[0]


def test_damaged_batches_get_kafkas_codes(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    cases = KAFKAS if against_apache() else KAFKAS + OURS
    answers = [
        (name, ErrorCode(ask(broker.port, topic, batch).error_code)) for name, batch, _ in cases
    ]
    assert answers == [(name, code) for name, _, code in cases]


def test_refused_batches_leave_nothing_behind(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic()
    for _, batch, code in KAFKAS[::5]:
        assert ask(broker.port, topic, batch).error_code == code
    assert (
        ask(broker.port, topic, GOOD).error_code,
        ask(broker.port, topic, GOOD).base_offset,
    ) == (0, 3)


def test_zstd_needs_version_7(broker: BrokerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic()
    batch = build_batch([NewRecord(now_ms(), None, b"v")], codec=Codec.ZSTD)
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert ask(broker.port, topic, batch, 6).error_code == code
    assert ask(broker.port, topic, batch, 7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topic_names_records_without_a_key(
    broker: BrokerProcess, new_topic: Callable[..., str], codec: Codec
) -> None:
    topic = new_topic(**{"cleanup.policy": "compact"})
    records = [NewRecord(now_ms(), key, b"v") for key in (b"a", None, b"", None)]
    answer = ask(broker.port, topic, build_batch(records, codec=codec))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 3]


def test_records_of_the_future_are_named(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    # One hour is the default of 4; that of 3.9 is no limit.
    topic = new_topic(**{"message.timestamp.after.max.ms": "3600000"})
    now = now_ms()
    records = [NewRecord(now + add, None, b"v") for add in (0, 7_200_000, 3_000_000)]
    answer = ask(broker.port, topic, build_batch(records))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1]


def test_log_append_time_is_answered(broker: BrokerProcess, new_topic: Callable[..., str]) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    before = now_ms()
    answer = ask(broker.port, topic, build_batch([NewRecord(1, None, b"v")]))
    assert before <= answer.log_append_time_ms <= now_ms()
    assert ask(broker.port, new_topic(), GOOD).log_append_time_ms == -1


def now_ms() -> int:
    """Wall time, as the broker under test reads it."""
    return time.time_ns() // 1_000_000  # noqa: TID251 - the broker cannot be told the time
