"""Stock clients send records with a delay, and are given them when they are due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import admin as admin_types

from tests.interop.clients import aio, confluent, java, kafka_python, kcat
from tests.interop.clients.record import Record, Sending
from tests.interop.conftest import ADMIN_TIMEOUT_SECONDS, against_apache
from tests.support import jars

if TYPE_CHECKING:
    from types import ModuleType

    from confluent_kafka.admin import AdminClient

    from tests.interop.conftest import NewTopicFunction

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no delays")

PYTHON_CLIENTS = (confluent, kafka_python, aio)
CLIENTS = (*PYTHON_CLIENTS, kcat)
DELAYS_MS = 1200, 600, 0, 900
ENABLED = {"delivery.delay.enable": "true"}
ADDED = {"delivery-source", "delivery-created-at", "delivery-point"}


def now_ms() -> int:
    return int(time.time() * 1000)  # noqa: TID251 - that of the clients and the broker


def delayed(delay_ms: int, number: int) -> Record:
    """A record with a delay, or without one if that is 0."""
    headers = (("deliver-after", b"%dms" % delay_ms),) if delay_ms else ()
    return Record(0, b"key", b"record %d" % number, now_ms(), headers)


def own_headers(record: Record) -> tuple[tuple[str, bytes], ...]:
    return tuple(header for header in record.headers if header[0] not in ADDED)


@pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.NAME)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_records_come_to_every_client_in_the_order_in_which_they_are_due(
    bootstrap: str, new_topic: NewTopicFunction, client: ModuleType, codec: str
) -> None:
    topic = new_topic(**ENABLED)
    sent = [delayed(delay_ms, number) for number, delay_ms in enumerate(DELAYS_MS)]
    began_ms = now_ms()

    sending = Sending(codec=codec, style="callback", is_idempotent=client is not kafka_python)
    placed = client.produce(bootstrap, topic, sent, sending)
    assert placed is not None
    readings = [reader.read(bootstrap, topic, len(sent)) for reader in CLIENTS]

    assert now_ms() - began_ms >= max(DELAYS_MS)
    assert sorted({place.offset for place in placed}) == [place.offset for place in placed]
    due = sorted(range(len(sent)), key=lambda number: DELAYS_MS[number])
    for reading in readings:
        assert [record.value for record in reading] == [sent[number].value for number in due]
        assert [own_headers(record) for record in reading] == [sent[n].headers for n in due]
        for record, number in zip(reading, due, strict=True):
            if DELAYS_MS[number]:
                assert record.timestamp_ms >= began_ms + DELAYS_MS[number]
                assert dict(record.headers)["delivery-source"] == b"%d" % placed[number].offset


def test_a_record_is_not_there_before_its_time_and_soon_after(
    bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**ENABLED)
    at_ms = now_ms() + 1500
    record = Record(0, None, b"later", now_ms(), (("deliver-at", b"%d" % at_ms),))
    confluent.produce(bootstrap, topic, [record], Sending())

    (read,) = confluent.read(bootstrap, topic, 1)

    assert read.timestamp_ms == at_ms
    assert at_ms <= now_ms() < at_ms + 15_000, "it is due within 100 ms on a machine at rest"


@pytest.mark.parametrize(
    "headers",
    [
        [("deliver-after", b"soon")],
        [("deliver-after", b"-1")],
        [("deliver-after", b"9999999999999999999d")],
        [("deliver-after", b"8d")],
        [("deliver-after", None)],
        [("deliver-at", b"")],
        [("deliver-at", b"9999999999999999999")],
        [("deliver-at", b"1"), ("deliver-after", b"1")],
        [("deliver-at", b"1"), ("deliver-at", b"1")],
        [("deliver-cancel", b"12345")],
        [("deliver-cancel", b"first")],
    ],
    ids=str,
)
def test_invalid_delay_headers_are_refused(
    bootstrap: str, new_topic: NewTopicFunction, headers: list[tuple[str, bytes | None]]
) -> None:
    topic = new_topic(**ENABLED)
    refusals: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})

    producer.produce(topic, b"x", headers=headers, on_delivery=lambda e, _: refusals.append(e))  # type: ignore[arg-type]
    producer.flush(60)

    (refusal,) = refusals
    assert refusal is not None
    assert refusal.code() == KafkaError.INVALID_RECORD


def test_without_the_key_the_headers_mean_nothing(
    bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic()
    record = Record(0, None, b"now", now_ms(), (("deliver-after", b"nonsense"),))

    confluent.produce(bootstrap, topic, [record], Sending())

    (read,) = confluent.read(bootstrap, topic, 1)
    assert read.without_offset() == record


def test_the_delay_of_a_transaction_begins_with_its_commit(
    bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**ENABLED)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    ended_ms = 0
    for outcome, value in (("abort", b"gone"), ("commit", b"kept")):
        producer.begin_transaction()
        producer.produce(topic, value, headers={"deliver-after": "500ms"})
        producer.flush(60)
        time.sleep(0.7)
        ended_ms = now_ms()
        (producer.abort_transaction if outcome == "abort" else producer.commit_transaction)(60)

    (read,) = confluent.read(bootstrap, topic, 1)

    assert read.value == b"kept"
    assert read.timestamp_ms >= ended_ms + 500


def test_a_record_that_waits_can_be_cancelled(bootstrap: str, new_topic: NewTopicFunction) -> None:
    topic = new_topic(**ENABLED)
    sent = [delayed(2000, 0), delayed(2500, 1)]
    placed = confluent.produce(bootstrap, topic, sent, Sending())
    assert placed is not None
    first = placed[0]
    cancel = Record(0, None, None, now_ms(), (("deliver-cancel", b"%d" % first.offset),))

    confluent.produce(bootstrap, topic, [cancel], Sending())

    (read,) = confluent.read(bootstrap, topic, 1)
    assert read.value == b"record 1"


def test_a_topic_has_a_delay_for_records_that_name_none(
    bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**ENABLED, **{"delivery.delay.ms": "800"})
    began_ms = now_ms()

    confluent.produce(bootstrap, topic, [Record(0, None, b"x", began_ms)], Sending())

    (read,) = confluent.read(bootstrap, topic, 1)
    assert read.timestamp_ms >= began_ms + 800


def test_delayed_records_are_delivered_after_delays_are_disabled(
    bootstrap: str, admin: AdminClient, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(**ENABLED)
    confluent.produce(bootstrap, topic, [delayed(1500, 0)], Sending())

    alter(admin, topic, "delivery.delay.enable", "false")
    confluent.produce(bootstrap, topic, [delayed(1500, 1)], Sending())

    readings = confluent.read(bootstrap, topic, 2)
    assert [record.value for record in readings] == [b"record 1", b"record 0"]


@pytest.mark.parametrize("first", ["retry.policy", "cleanup.policy"])
def test_retry_topics_are_not_compacted(
    admin: AdminClient, new_topic: NewTopicFunction, first: str
) -> None:
    values = {"retry.policy": "levels", "cleanup.policy": "compact"}
    topic = new_topic(**{first: values.pop(first)})
    ((second, value),) = values.items()

    with pytest.raises(KafkaException) as refused:
        alter(admin, topic, second, value)

    assert refused.value.args[0].code() == KafkaError.INVALID_CONFIG


@pytest.mark.parametrize(
    "version",
    [jars.CLIENTS_2, pytest.param(jars.KAFKA_4_3, marks=pytest.mark.slow), jars.KAFKA_4],
)
def test_java_sends_and_receives_delays(
    bootstrap: str, new_topic: NewTopicFunction, version: str
) -> None:
    topic = new_topic(**ENABLED)

    said = java.run_program(version, "Delays", [bootstrap, topic])

    assert said.get("read") == "third,second,first,committed", said
    assert said.get("early") == "0", said


def alter(admin: AdminClient, topic: str, name: str, value: str) -> None:
    """Set one key of a topic."""
    types: Any = admin_types
    entry = types.ConfigEntry(name, value, incremental_operation=types.AlterConfigOpType.SET)
    resource = types.ConfigResource(
        types.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry]
    )
    admin.incremental_alter_configs([resource])[resource].result(ADMIN_TIMEOUT_SECONDS)
