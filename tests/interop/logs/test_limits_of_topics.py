"""Topic limits applied to a whole batch and to single records, by either broker.

With AGAINST=apache these tests ask Apache Kafka itself, which is where the answers come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from tests.interop.hostility.test_refused_batches import ask, now_ms
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.records.record import Record
    from tests.support.brokers.broker_process import BrokerProcess

HOUR_MS = 3_600_000
FETCH, FETCH_VERSION = 1, 11
CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def stored(port: int, topic: str) -> memoryview:
    """Return all batches of partition 0 as stored in the log."""
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            FetchRequest.Topic(
                topic=topic,
                partitions=[
                    FetchRequest.Topic.Partition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
        forgotten_topics_data=[],
    )
    head = request_header(FETCH, FETCH_VERSION)
    with RawConnection.open(port) as connection:
        answer = connection.ask(head + request.encode(FETCH_VERSION))
    response = FetchResponse.decode(FETCH_VERSION, memoryview(answer)[4:])
    records = response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    return records


def records_of(data: memoryview) -> list[Record]:
    return [
        record
        for position, header in iterate_headers(data)
        for record in iterate_records(data[position : position + header.size_in_bytes])
    ]


def test_records_with_too_old_timestamps_are_named(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**{"message.timestamp.before.max.ms": str(HOUR_MS)})
    now = now_ms()
    records = [NewRecord(now - age, None, b"v") for age in (2 * HOUR_MS, 0, HOUR_MS + 5000)]

    answer = ask(broker.port, topic, build_batch(records))
    sound = ask(broker.port, topic, build_batch(records[1:2]))
    untimed = ask(broker.port, topic, build_batch([NewRecord(-1, None, b"v")]))

    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0, 2]
    assert all(error.batch_index_error_message for error in answer.record_errors)
    assert answer.error_message
    assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
    assert (sound.error_code, sound.base_offset) == (ErrorCode.NONE, 0)
    assert (untimed.error_code, untimed.base_offset) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_missing_keys_and_wrong_timestamps_are_both_named_under_invalid_timestamp(
    broker: BrokerProcess, new_topic: Callable[..., str], codec: Codec
) -> None:
    topic = new_topic(
        **{"cleanup.policy": "compact", "message.timestamp.after.max.ms": str(HOUR_MS)}
    )
    now, late = now_ms(), now_ms() + 3 * HOUR_MS
    records = [
        NewRecord(now, b"k", b"v"),
        NewRecord(late, None, b"v"),
        NewRecord(late, b"k", b"v"),
        NewRecord(now, None, None),
    ]

    answer = ask(broker.port, topic, build_batch(records, codec=codec))

    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1, 2, 3]


def test_append_time_needs_no_time_of_the_producer(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(
        **{
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "1",
            "message.timestamp.after.max.ms": "1",
        }
    )
    before = now_ms()

    answer = ask(broker.port, topic, build_batch([NewRecord(at, None, b"v") for at in (5, 2**50)]))

    assert answer.error_code == ErrorCode.NONE
    assert {record.timestamp for record in records_of(stored(broker.port, topic))} == {
        answer.log_append_time_ms
    }
    assert before <= answer.log_append_time_ms <= now_ms()


@pytest.mark.parametrize("wanted", CODECS)
def test_stored_batches_have_the_codec_of_the_topic(
    broker: BrokerProcess, new_topic: Callable[..., str], wanted: str
) -> None:
    topic = new_topic(**{"compression.type": wanted})
    now = now_ms()
    records = [NewRecord(now + index % 3, b"%d" % index, b"again" * 9) for index in range(30)]
    batches = [build_batch(records, codec=codec, producer_id=-1) for codec in Codec]

    for number, batch in enumerate(batches):
        assert ask(broker.port, topic, batch).base_offset == number * len(records)

    data = stored(broker.port, topic)
    headers = [header for _, header in iterate_headers(data)]
    assert {header.codec for header in headers} == {CODECS[wanted]}
    assert {header.max_timestamp for header in headers} == {now + 2}
    found = records_of(data)
    assert [record.offset for record in found] == list(range(len(records) * len(batches)))
    assert [record[1:] for record in found] == [tuple(one) for one in records] * len(batches)
    same = batches[CODECS[wanted]]
    position = next(
        at for at, header in iterate_headers(data) if header.base_offset == CODECS[wanted] * 30
    )
    assert data[position + 21 : position + len(same)] == same[21:], "not even recompressed"


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip"])
def test_size_limit_is_that_of_the_batch_as_it_came_and_as_it_is_stored(
    broker: BrokerProcess, new_topic: Callable[..., str], wanted: str
) -> None:
    topic = new_topic(**{"compression.type": wanted, "max.message.bytes": "1000"})
    records = [NewRecord(now_ms(), b"k", bytes(2000))]

    small = ask(broker.port, topic, build_batch(records, codec=Codec.LZ4))
    large = ask(broker.port, topic, build_batch(records))

    fits = wanted == "gzip"
    assert small.error_code == (ErrorCode.NONE if fits else ErrorCode.MESSAGE_TOO_LARGE)
    assert large.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_repeated_batch_is_known_again_although_it_was_recompressed(
    broker: BrokerProcess, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(**{"compression.type": "zstd"})
    batches = [
        build_batch(
            [NewRecord(now_ms(), b"k", b"v" * 50)] * 3,
            producer_id=4711,
            producer_epoch=0,
            base_sequence=3 * number,
        )
        for number in range(2)
    ]

    offsets = [ask(broker.port, topic, batches[number]).base_offset for number in (0, 1, 0, 1)]

    assert offsets == [0, 3, 0, 3]
