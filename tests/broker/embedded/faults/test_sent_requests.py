"""Requests of clients are recorded, within bounds, without holding a connection's buffer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from broker.embedded.faults.sent_requests import SentRequests
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import ProduceRequest


def context(now_ms: int = 7) -> Any:
    return SimpleNamespace(api_version=9, client_id="me", principal="User:me", now_ms=now_ms)


def produce(records: memoryview) -> ProduceRequest:
    partition = ProduceRequest.TopicData.PartitionData(index=0, records=records)
    topic = ProduceRequest.TopicData(name="orders", partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=0, topic_data=[topic])


def test_records_are_those_that_were_sent_though_the_buffer_is_used_again() -> None:
    buffer = bytearray(b"records")
    sent = SentRequests()
    sent.bound(requests=1, record_bytes=100)

    sent.note(context(), produce(memoryview(buffer)))
    buffer[:] = b"another"

    (one,) = sent.all()
    message: Any = one.message
    assert message.topic_data[0].partition_data[0].records == b"records"
    assert (one.version, one.client_id, one.received_ms) == (9, "me", 7)


def test_only_the_newest_requests_are_kept() -> None:
    sent = SentRequests()
    sent.bound(requests=20, record_bytes=0)
    for number in range(25):
        sent.note(context(number), MetadataRequest(topics=[]))
    assert len(sent.all()) == 20
    assert sent.all()[0].received_ms == 5


def test_record_bytes_in_kept_requests_are_bounded() -> None:
    sent = SentRequests()
    sent.bound(requests=20, record_bytes=4_000)
    large = memoryview(bytes(1_000))
    for _ in range(9):
        sent.note(context(), produce(large))
    assert len(sent.all()) == 4
    sent.bound(requests=3, record_bytes=4_000)
    assert len(sent.all()) == 3
    sent.clear()
    assert sent.all() == []
