"""Faults as stock clients meet them: retried, made twice, or given up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from broker.testing import (
    EmbeddedBroker,
    ErrorCode,
    Fetch,
    Metadata,
    NotReachedError,
    OffsetCommit,
    Produce,
)
from tests.interop.embedded.conftest import produced


def by_confluent(bootstrap: str, topic: str, value: bytes) -> None:
    assert produced(bootstrap, topic, value) == [0]


def by_kafka_python(bootstrap: str, topic: str, value: bytes) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, retry_backoff_ms=10)
    producer.send(topic, value).get(20)
    producer.close()


def by_aiokafka(bootstrap: str, topic: str, value: bytes) -> None:
    from aiokafka import AIOKafkaProducer

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, retry_backoff_ms=10, acks="all")
        async with producer:
            await producer.send_and_wait(topic, value)

    asyncio.run(send())


each_client = pytest.mark.parametrize("send", [by_confluent, by_kafka_python, by_aiokafka])
Send = Callable[[str, str, bytes], None]


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


@each_client
def test_an_error_that_passes_is_retried(broker: EmbeddedBroker, topic: str, send: Send) -> None:
    with broker.fail(Produce, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2, topic=topic) as fault:
        send(broker.bootstrap_servers, topic, b"one")
        assert fault.count == 2
    assert values(broker, topic) == [b"one"]
    assert len(broker.requests.of(Produce)) == 3


@each_client
def test_a_lost_answer_makes_no_duplicate_of_an_idempotent_producer_only(
    broker: EmbeddedBroker, topic: str, send: Send
) -> None:
    with broker.drop_answer(Produce, times=1, topic=topic) as fault:
        send(broker.bootstrap_servers, topic, b"one")
        assert fault.count == 1
    is_idempotent = send is by_kafka_python  # alone of the three unless told otherwise
    assert values(broker, topic) == [b"one"] * (1 if is_idempotent else 2)


def test_an_idempotent_producer_makes_no_duplicate(broker: EmbeddedBroker, topic: str) -> None:
    with broker.drop_answer(Produce, times=2) as fault:
        assert produced(broker.bootstrap_servers, topic, b"one", enable_idempotence=True) == [0]
        assert fault.count == 2
    assert values(broker, topic) == [b"one"]


@each_client
def test_a_connection_that_breaks_is_made_again(
    broker: EmbeddedBroker, topic: str, send: Send
) -> None:
    with broker.disconnect(Produce, times=1) as fault:
        send(broker.bootstrap_servers, topic, b"one")
        assert fault.count == 1
    assert values(broker, topic) == [b"one"]


def test_a_non_retriable_error_reaches_the_client(broker: EmbeddedBroker, topic: str) -> None:
    with broker.fail(Produce, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        codes = produced(broker.bootstrap_servers, topic, b"one")
    assert codes == [int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    assert values(broker, topic) == []


def test_a_fault_ends_with_its_context(broker: EmbeddedBroker, topic: str) -> None:
    with broker.fail(Produce, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        assert produced(broker.bootstrap_servers, topic, b"one") != [0]
    assert produced(broker.bootstrap_servers, topic, b"two") == [0]


def test_other_topics_and_clients_are_spared(broker: EmbeddedBroker, topic: str) -> None:
    other = f"{topic}-other"
    broker.create_topic(other)
    with (
        broker.fail(Produce, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic=topic),
        broker.fail(Produce, ErrorCode.INVALID_RECORD, client_id="nobody") as never,
    ):
        assert produced(broker.bootstrap_servers, other, b"one") == [0]
        assert produced(broker.bootstrap_servers, topic, b"two") != [0]
    assert never.count == 0


def test_one_request_with_two_topics_fails_for_one(broker: EmbeddedBroker, topic: str) -> None:
    from confluent_kafka import Producer

    other = f"{topic}-other"
    broker.create_topic(other)
    codes: dict[str, int] = {}
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 50, "log_level": 0}
    )

    def note(error: object, message: object) -> None:
        codes[message.topic()] = error.code() if error else 0  # type: ignore[attr-defined]

    with broker.fail(Produce, ErrorCode.INVALID_RECORD, topic=topic):
        for name in (topic, other):
            producer.produce(name, b"one", on_delivery=note)
        producer.flush(20)
    assert codes == {topic: int(ErrorCode.INVALID_RECORD), other: 0}
    assert (values(broker, topic), values(broker, other)) == ([], [b"one"])


def test_a_request_is_held_back(broker: EmbeddedBroker, topic: str) -> None:
    produced(broker.bootstrap_servers, topic, b"zero")
    began = time.monotonic()
    with broker.delay(Produce, seconds=0.3, times=1):
        assert produced(broker.bootstrap_servers, topic, b"one") == [0]
    assert time.monotonic() - began >= 0.3
    assert values(broker, topic) == [b"zero", b"one"]


def test_an_answer_that_is_withheld_runs_into_the_clients_time_out(
    broker: EmbeddedBroker, topic: str
) -> None:
    with broker.drop_answer(Produce, times=1, disconnects=False):
        codes = produced(broker.bootstrap_servers, topic, b"one", socket_timeout_ms=300)
    assert codes == [0]
    assert values(broker, topic) == [b"one", b"one"]


def test_a_failed_fetch_is_retried(broker: EmbeddedBroker, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    produced(broker.bootstrap_servers, topic, b"one")
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0}
    )
    with broker.fail(Fetch, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3, topic=topic) as fault:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"one"
        assert fault.count == 3
    consumer.close()


def test_a_failed_commit_is_raised(broker: EmbeddedBroker, topic: str) -> None:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "log_level": 0}
    )
    place = [TopicPartition(topic, 0, 1)]
    fault = broker.fail(OffsetCommit, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    with fault, pytest.raises(KafkaException):
        consumer.commit(offsets=place, asynchronous=False)
    consumer.commit(offsets=place, asynchronous=False)
    consumer.close()


def test_metadata_may_fail_for_a_topic(broker: EmbeddedBroker, topic: str) -> None:
    with broker.fail(Metadata, ErrorCode.LEADER_NOT_AVAILABLE, times=1, topic=topic) as fault:
        assert produced(broker.bootstrap_servers, topic, b"one") == [0]
        assert fault.count == 1


def test_a_fault_is_waited_for(broker: EmbeddedBroker, topic: str) -> None:
    with broker.disconnect(Produce, times=1) as fault:
        with pytest.raises(NotReachedError, match="0 of 1"):
            fault.wait(timeout=0.02)
        produced(broker.bootstrap_servers, topic, b"one")
        fault.wait()


def test_requests_are_shown_as_they_were_sent(broker: EmbeddedBroker, topic: str) -> None:
    produced(broker.bootstrap_servers, topic, b"one", acks=1, client_id="me")

    (request,) = broker.requests.wait_for(Produce)
    assert (request.acks, request.transactional_id) == (1, None)
    (partition,) = request.topic_data[0].partition_data
    assert isinstance(partition.records, bytes)
    assert b"one" in partition.records
    clients = {one.client_id for one in broker.requests if isinstance(one.message, Produce)}
    assert clients == {"me"}
    assert broker.requests.of(Produce, client_id="you") == []


def test_faults_reach_a_broker_in_a_process_of_its_own() -> None:
    with EmbeddedBroker(isolation="process") as broker:
        broker.create_topic("orders")
        with broker.fail(Produce, ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2) as fault:
            assert produced(broker.bootstrap_servers, "orders", b"one") == [0]
            assert fault.count == 2
        assert broker.requests.of(Produce)[0].acks == -1


def test_an_error_of_a_request_whose_answer_is_dropped_is_dropped_too(
    broker: EmbeddedBroker, topic: str
) -> None:
    with broker.drop_answer(Produce, times=1) as fault:
        codes = produced(
            broker.bootstrap_servers, topic, bytes(2_000_000), message_max_bytes=3_000_000
        )
        assert fault.count == 1
    assert codes == [int(ErrorCode.MESSAGE_TOO_LARGE)]
    assert len(broker.requests.of(Produce)) == 2


def test_errors_and_requests_go_by_their_names(broker: EmbeddedBroker, topic: str) -> None:
    with broker.fail("produce", error="not_leader_or_follower", times=1) as fault:
        assert produced(broker.bootstrap_servers, topic, b"one") == [0]
        assert fault.count == 1
    assert [one.acks for one in broker.requests.wait_for("Produce", 2)] == [-1, -1]
    with pytest.raises(ValueError, match="did you mean NOT_LEADER_OR_FOLLOWER"):
        broker.fail(Produce, "NOT_LEADER_OR_FOLOWER")
    for strike in (broker.disconnect, broker.drop_answer):
        with pytest.raises(ValueError, match="did you mean Produce"):
            strike("Prodce")


def test_coroutines_call_errors_and_requests_by_their_names() -> None:
    async def scenario() -> None:
        async with EmbeddedBroker() as broker:
            await broker.create_topic("orders")
            async with await broker.fail("produce", "not_leader_or_follower", times=1) as fault:
                sent = asyncio.to_thread(produced, broker.bootstrap_servers, "orders", b"one")
                codes, _ = await asyncio.gather(sent, fault.wait())
                assert codes == [0]
                with pytest.raises(NotReachedError, match=r"1 of 2 requests were struck"):
                    await fault.wait(2, timeout_seconds=0.01)
            assert len(await broker.requests_of("Produce", client_id="rdkafka")) == 2
            with pytest.raises(ValueError, match="did you mean Produce"):
                await broker.delay("Prodce", 1)

    asyncio.run(scenario())
