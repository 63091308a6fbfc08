"""DeleteRecords in a cluster: records reported as deleted stay deleted under the next leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition, admin

from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import against_apache, create_topic, eventually, patiently

if TYPE_CHECKING:
    from tests.interop.conftest import NewName
    from tests.support.brokers.trio import Trio

pytestmark = pytest.mark.skipif(against_apache(), reason="it is our brokers that are killed")

CALL_SECONDS = 30.0
RECORDS, GONE = 10, 4


@pytest.fixture
def topic(trio: Trio, new_name: NewName) -> str:
    """Return a topic with records, of which all three brokers have a replica."""
    name = new_name("trimmed")
    create_topic(trio.admin, name, 1, replicas=3)
    eventually(lambda: trio.leader(name, 0) >= 0)
    sending = Sending(style="callback", is_idempotent=True)
    confluent.produce(trio.bootstrap, name, numbered_records(RECORDS, 0), sending)
    return name


def delete(trio: Trio, topic: str, offset: int, seconds: float = CALL_SECONDS) -> int:
    """Delete what is before `offset`; returns the low watermark."""
    at = TopicPartition(topic, 0, offset)
    futures = trio.admin.delete_records(
        [at], operation_timeout=seconds, request_timeout=CALL_SECONDS
    )
    return int(futures[at].result().low_watermark)


def first_offset(trio: Trio, topic: str) -> int:
    earliest: Any = admin.OffsetSpec.earliest()  # type: ignore[attr-defined, no-untyped-call]
    at = TopicPartition(topic, 0)
    found: int = trio.admin.list_offsets({at: earliest})[at].result(CALL_SECONDS).offset
    return found


def test_records_do_not_come_back_with_the_next_leader(trio: Trio, topic: str) -> None:
    leader = trio.leader(topic, 0)

    low_watermark = patiently(lambda: delete(trio, topic, GONE))
    trio.brokers[leader].kill()

    assert low_watermark == GONE
    trio.wait_for_another_leader(topic, 0, leader)
    assert patiently(lambda: first_offset(trio, topic)) == GONE


def test_a_replica_that_hangs_is_waited_for(trio: Trio, topic: str) -> None:
    leader = trio.leader(topic, 0)
    frozen = trio.brokers[(leader + 1) % len(trio.brokers)]
    patiently(lambda: delete(trio, topic, 1))
    frozen.freeze()
    try:
        with pytest.raises(KafkaException) as caught:
            delete(trio, topic, GONE, seconds=0.1)
    finally:
        frozen.thaw()

    assert caught.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT
    trio.heal()
    assert patiently(lambda: delete(trio, topic, GONE)) == GONE
