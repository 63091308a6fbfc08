"""The job against a broker that refuses, loses answers, and dies with a transaction open."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from job import run

from broker.testing import ErrorCode, Produce
from storage import Sale

SALES = [Sale("2026-11-23", 250), Sale("2026-11-24", 100), Sale("2026-11-23", 50)]


@pytest.fixture
def totals(kafka_broker, kafka_topic):
    name = f"{kafka_topic}-totals"
    kafka_broker.create_topic(name)
    yield name
    kafka_broker.delete_topic(name)


@pytest.fixture
def job(kafka_broker, kafka_topic, totals):
    return lambda: run(kafka_broker.bootstrap_servers, kafka_topic, totals)


@pytest.fixture
def sell(kafka_broker, kafka_topic):
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})

    def sell(*sales):
        for sale in sales:
            producer.produce(kafka_topic, sale.to_json())
        assert producer.flush(10) == 0

    return sell


def written(broker, topic, count):
    """What readers of committed records see."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    found = []
    while (message := consumer.poll(10)) is not None and message.error() is None:
        found.append(json.loads(message.value()))
    consumer.close()
    assert len(found) == count
    return found


def test_each_sale_counts_once_in_however_many_runs(kafka_broker, totals, job, sell):
    sell(*SALES)
    assert job() == {"2026-11-23": 300, "2026-11-24": 100}
    assert job() == {}
    sell(Sale("2026-11-24", 7))
    assert job() == {"2026-11-24": 7}
    first, second = written(kafka_broker, totals, 2)
    assert (first, second) == ({"2026-11-23": 300, "2026-11-24": 100}, {"2026-11-24": 7})


def test_a_run_that_may_not_write_leaves_nothing(kafka_broker, totals, job, sell):
    sell(*SALES)
    with (
        kafka_broker.fail(Produce, ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic=totals),
        pytest.raises(KafkaException),
    ):
        job()
    assert job() == {"2026-11-23": 300, "2026-11-24": 100}
    assert written(kafka_broker, totals, 1) == [{"2026-11-23": 300, "2026-11-24": 100}]


def test_a_lost_answer_adds_nothing_twice(kafka_broker, totals, job, sell):
    sell(*SALES)
    with kafka_broker.drop_answer(Produce, times=1, topic=totals) as lost:
        job()
    assert lost.count == 1
    assert written(kafka_broker, totals, 1) == [{"2026-11-23": 300, "2026-11-24": 100}]


def test_totals_of_a_run_that_dies_are_never_seen(kafka_broker, totals, job, sell):
    sell(*SALES)
    dying = Producer(
        {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": totals}
    )
    dying.init_transactions(10)
    dying.begin_transaction()
    dying.produce(totals, b'{"2026-11-23": 999}')
    dying.flush(10)
    kafka_broker.restart()
    assert job() == {"2026-11-23": 300, "2026-11-24": 100}
    assert written(kafka_broker, totals, 1) == [{"2026-11-23": 300, "2026-11-24": 100}]
