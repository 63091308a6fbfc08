"""Settings of delays and retries that make no sense are refused with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.interop.conftest import against_apache, create_topic
from tests.interop.messaging.test_delays import alter
from tests.interop.messaging.test_retries import PATIENCE_SECONDS, reader

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from tests.interop.conftest import NewName, NewTopicFunction

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no such settings")

OFFSETS_TOPIC = "__consumer_offsets"
DEAD_LETTERS = "retry.dead.letter.topic"
NO_NAME = "bad topic!"


def check_refused(refused: pytest.ExceptionInfo[KafkaException], reason: str) -> None:
    error = refused.value.args[0]
    assert error.code() == KafkaError.INVALID_CONFIG
    assert reason in error.str()


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("delivery.delay.enable", "true", "cannot be set on __consumer_offsets"),
        ("retry.policy", "levels", "cleanup.policy=compact and a retry.policy"),
    ],
)
def test_delays_cannot_be_enabled_on_internal_topics(
    admin: AdminClient, bootstrap: str, key: str, value: str, reason: str
) -> None:
    consumer = reader(bootstrap, OFFSETS_TOPIC)
    consumer.committed([TopicPartition("any", 0)], timeout=PATIENCE_SECONDS)  # it is there now

    with pytest.raises(KafkaException) as refused:
        alter(admin, OFFSETS_TOPIC, key, value)

    check_refused(refused, reason)


def test_a_topic_is_not_created_with_dead_letters_that_have_no_place(
    admin: AdminClient, new_name: NewName
) -> None:
    with pytest.raises(KafkaException) as refused:
        create_topic(admin, new_name("billing"), 1, config={DEAD_LETTERS: NO_NAME})

    check_refused(refused, f"Topic name '{NO_NAME}' is illegal")


def test_dead_letters_are_not_sent_where_no_topic_can_be(
    admin: AdminClient, new_topic: NewTopicFunction
) -> None:
    with pytest.raises(KafkaException) as refused:
        alter(admin, new_topic(), DEAD_LETTERS, NO_NAME)

    check_refused(refused, f"Topic name '{NO_NAME}' is illegal")
