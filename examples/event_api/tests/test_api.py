"""What clients of the API hear when Kafka refuses, loses answers, or stands still."""

from __future__ import annotations

import json

import pytest
from api import application
from fastapi.testclient import TestClient

from broker.testing import ErrorCode, Produce
from config import Settings

LONG, SHORT = 30.0, 0.5


@pytest.fixture
def client(kafka_broker, kafka_topic):
    settings = Settings(kafka_broker.bootstrap_servers, kafka_topic, LONG)
    with TestClient(application(settings)) as client:
        yield client


@pytest.fixture
def impatient(kafka_broker, kafka_topic):
    settings = Settings(kafka_broker.bootstrap_servers, kafka_topic, SHORT)
    with TestClient(application(settings)) as client:
        yield client


def post(client, number):
    return client.post("/events", json={"id": f"{number}", "text": "a visit"})


def stored(broker, topic):
    return [json.loads(record.value)["id"] for record in broker.records(topic)]


def test_what_is_answered_is_stored(kafka_broker, kafka_topic, client):
    answers = [post(client, number) for number in range(10)]
    assert [answer.status_code for answer in answers] == [202] * 10
    assert [answer.json()["offset"] for answer in answers] == list(range(10))
    assert stored(kafka_broker, kafka_topic) == [f"{number}" for number in range(10)]


def test_a_lost_answer_stores_nothing_twice(kafka_broker, kafka_topic, client):
    with kafka_broker.drop_answer(Produce, times=1) as lost:
        assert post(client, 1).status_code == 202
    assert lost.count == 1
    assert stored(kafka_broker, kafka_topic) == ["1"]


def test_a_refusal_for_good_is_told_at_once(kafka_broker, kafka_topic, client):
    with kafka_broker.fail(Produce, ErrorCode.INVALID_RECORD, topic=kafka_topic):
        answer = post(client, 1)
    assert answer.status_code == 503
    assert "failed to validate record" in answer.json()["detail"]
    assert post(client, 2).status_code == 202
    assert stored(kafka_broker, kafka_topic) == ["2"]


def test_a_broker_that_stands_still_costs_a_client_no_more_than_its_patience(
    kafka_broker, kafka_topic, client, impatient
):
    assert post(client, 1).status_code == 202
    with kafka_broker.paused():
        assert post(impatient, 2).status_code == 503
    assert post(client, 3).status_code == 202
    assert stored(kafka_broker, kafka_topic)[-1] == "3"
