"""Topics with a `compression.type` of their own: the stock clients see what was sent, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients import aio, confluent, kafka_python
from tests.interop.clients.record import CODECS, Placed, Sending, numbered_records

if TYPE_CHECKING:
    from tests.interop.conftest import NewTopicFunction

COUNT = 60


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read_as_they_were_sent(
    bootstrap: str, new_topic: NewTopicFunction, wanted: str
) -> None:
    topic = new_topic(partitions=len(CODECS), **{"compression.type": wanted})
    sent = {
        partition: numbered_records(COUNT, partition, size=300) for partition in range(len(CODECS))
    }

    for partition, codec in enumerate(CODECS):
        sending = Sending(codec=codec, style="callback", is_idempotent=True)
        placed = confluent.produce(bootstrap, topic, sent[partition], sending)
        assert placed == [Placed(partition, offset) for offset in range(COUNT)]
    readings = [
        client.read(bootstrap, topic, COUNT * len(CODECS))
        for client in (confluent, kafka_python, aio)
    ]

    assert all(reading == readings[0] for reading in readings)
    for partition in range(len(CODECS)):
        received = [record for record in readings[0] if record.partition == partition]
        assert [record.without_offset() for record in received] == sent[partition]
        assert [record.offset for record in received] == list(range(COUNT))


@pytest.mark.parametrize("acks", [0, 1])
def test_order_holds_without_idempotence(
    bootstrap: str, new_topic: NewTopicFunction, acks: int
) -> None:
    topic = new_topic(**{"compression.type": "gzip"})
    sent = numbered_records(300)

    confluent.produce(bootstrap, topic, sent, Sending(acks, style="fire-and-forget"))

    records = confluent.read(bootstrap, topic, len(sent))
    assert [record.without_offset() for record in records] == sent
