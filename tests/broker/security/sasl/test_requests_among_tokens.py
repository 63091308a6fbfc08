"""Requests sent while tokens are awaited are answered with an error before the connection ends."""

from __future__ import annotations

import pytest

from broker.security.sasl.reply import Verdict
from broker.security.sasl.states import State
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.broker.security.sasl.sasl_frames import Talk, answer_to, frame_of


def test_topics_named_among_tokens_are_in_an_illegal_sasl_state() -> None:
    talk = Talk()
    talk.handshake()
    topics = [MetadataRequest.Topic(name=name) for name in ("orders", "invoices")]

    reply = talk.send(frame_of(MetadataRequest(topics=topics), 9))

    answer = answer_to(MetadataRequest, reply, 9)
    assert isinstance(answer, MetadataResponse)
    assert [(one.name, one.error_code) for one in answer.topics] == [
        ("orders", ErrorCode.ILLEGAL_SASL_STATE),
        ("invoices", ErrorCode.ILLEGAL_SASL_STATE),
    ]
    assert (reply.verdict, talk.conversation.state) == (Verdict.REFUSE, State.FAILED)


def _batch(topic: str, acks: int) -> bytes:
    partition = ProduceRequest.TopicData.PartitionData(index=3, records=b"batch")
    data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
    return frame_of(ProduceRequest(acks=acks, timeout_ms=1, topic_data=[data]), 9)


def test_a_batch_among_tokens_is_refused_by_its_partition() -> None:
    talk = Talk()
    talk.handshake()

    answer = answer_to(ProduceRequest, talk.send(_batch("orders", -1)), 9)

    assert isinstance(answer, ProduceResponse)
    told = answer.responses[0].partition_responses[0]
    assert (told.index, told.error_code) == (3, ErrorCode.ILLEGAL_SASL_STATE)
    assert told.error_message == (
        "Unexpected Kafka request of type PRODUCE during SASL authentication."
    )


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(_batch("orders", 0), id="no answer is awaited"),
        pytest.param(_batch("o" * 30_000, -1) + bytes(10_000), id="large"),
        pytest.param(
            frame_of(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]), 11),
            id="not among those refused so",
        ),
    ],
)
def test_a_request_among_tokens_ends_the_connection_unanswered(frame: bytes) -> None:
    talk = Talk()
    talk.handshake()

    reply = talk.send(frame)

    assert (reply.verdict, reply.answer) == (Verdict.REFUSE, None)


def test_a_name_that_grows_past_the_longest_string_is_malformed_among_tokens() -> None:
    talk = Talk()
    talk.handshake()
    sent = frame_of(MetadataRequest(topics=[MetadataRequest.Topic(name="o")]), 9)

    reply = talk.send(sent.replace(b"\x02o", b"\x80\x80\x01" + b"\xff" * 16_383))

    assert (reply.verdict, reply.answer) == (Verdict.HANG_UP, None)
