"""Records sent by one stock client are read, whole and in order, by every other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients import aio, confluent, kafka_python, kcat
from tests.interop.clients.record import ACKS, CODECS, STYLES, Placed, Record, Sending
from tests.interop.clients.record import numbered_records as numbered

if TYPE_CHECKING:
    from types import ModuleType

    from tests.interop.conftest import NewTopicFunction

PYTHON_CLIENTS = (confluent, kafka_python, aio)
CLIENTS = (*PYTHON_CLIENTS, kcat)
COUNT = 40

each_client = pytest.mark.parametrize("client", PYTHON_CLIENTS, ids=lambda client: client.NAME)


@each_client
@pytest.mark.parametrize("acks", ACKS, ids="acks={}".format)
@pytest.mark.parametrize("style", STYLES)
def test_records_arrive_in_order_at_the_offsets_that_were_acknowledged(
    bootstrap: str, new_topic: NewTopicFunction, client: ModuleType, style: str, acks: int
) -> None:
    topic = new_topic()
    sent = numbered(COUNT)

    placed = client.produce(bootstrap, topic, sent, Sending(acks, style=style))
    records = confluent.read(bootstrap, topic, COUNT)

    assert [record.without_offset() for record in records] == sent
    assert [record.offset for record in records] == list(range(COUNT))
    if style == "fire-and-forget":
        assert placed is None
    elif acks != 0:
        assert placed == [Placed(0, offset) for offset in range(COUNT)]


@each_client
def test_idempotent_producer_is_acknowledged(
    bootstrap: str, new_topic: NewTopicFunction, client: ModuleType
) -> None:
    topic = new_topic(partitions=2)
    sent = [*numbered(COUNT, 0), *numbered(COUNT, 1)]

    client.produce(bootstrap, topic, sent, Sending(style="callback", is_idempotent=True))

    records = kafka_python.read(bootstrap, topic, 2 * COUNT)
    assert [record.without_offset() for record in records] == sent


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_every_client_compressed(
    bootstrap: str, new_topic: NewTopicFunction, codec: str
) -> None:
    topic = new_topic(partitions=len(CLIENTS))
    sent = {partition: numbered(COUNT, partition, size=500) for partition in range(len(CLIENTS))}
    for partition, writer in enumerate(CLIENTS):
        writer.produce(bootstrap, topic, sent[partition], Sending(codec=codec, style="callback"))

    readings = [reader.read(bootstrap, topic, COUNT * len(CLIENTS)) for reader in CLIENTS]

    assert all(reading == readings[0] for reading in readings)
    for partition in range(len(CLIENTS)):
        records = [record for record in readings[0] if record.partition == partition]
        assert [record.offset for record in records] == list(range(COUNT))
        if partition == CLIENTS.index(kcat):
            assert [record[1:3] for record in records] == [r[1:3] for r in sent[partition]]
            assert {record.headers for record in records} == {sent[partition][0].headers}
        else:
            assert [record.without_offset() for record in records] == sent[partition]


@each_client
def test_null_keys_null_values_and_empty_values_are_told_apart(
    bootstrap: str, new_topic: NewTopicFunction, client: ModuleType
) -> None:
    topic = new_topic()
    sent = [
        Record(0, None, b"no key"),
        Record(0, b"tombstone", None),
        Record(0, b"", b""),
        Record(0, b"k", b"v", headers=(("twice", b"1"), ("twice", b"2"))),
    ]

    client.produce(bootstrap, topic, sent, Sending())

    for reader in PYTHON_CLIENTS:
        records = reader.read(bootstrap, topic, len(sent))
        assert [record.without_offset() for record in records] == sent


@each_client
def test_a_record_of_900_kilobytes_passes(
    bootstrap: str, new_topic: NewTopicFunction, client: ModuleType
) -> None:
    topic = new_topic()
    sent = [Record(0, b"k", bytes(range(256)) * 3600), Record(0, b"l", b"small")]

    client.produce(bootstrap, topic, sent, Sending())

    assert [record.without_offset() for record in client.read(bootstrap, topic, 2)] == sent


@each_client
def test_sending_to_an_unknown_topic_creates_it(
    bootstrap: str, new_name: object, client: ModuleType
) -> None:
    assert callable(new_name)
    topic = new_name("auto-created")

    client.produce(bootstrap, topic, numbered(3), Sending())

    assert [record.without_offset() for record in client.read(bootstrap, topic, 3)] == numbered(3)
