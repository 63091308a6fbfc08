"""What a customer is told when Kafka refuses, loses answers, or has died."""

from __future__ import annotations

import json
import os

import django
from django.test import SimpleTestCase, override_settings
from views import producer

from broker.testing import ErrorCode, KafkaTestMixin, Produce

os.environ["DJANGO_SETTINGS_MODULE"] = "config"
django.setup()


class TestOrders(KafkaTestMixin, SimpleTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.addClassCleanup(producer.cache_clear)

    def setUp(self):
        super().setUp()
        self.enterContext(
            override_settings(
                KAFKA_BOOTSTRAP_SERVERS=self.kafka_broker.bootstrap_servers,
                KAFKA_TOPIC=self.kafka_topic,
                KAFKA_PATIENCE_SECONDS=30.0,
            )
        )

    def place(self, item):
        return self.client.post("/orders", {"item": item, "count": 1})

    def stored(self):
        records = self.kafka_broker.records(self.kafka_topic)
        return [json.loads(record.value)["item"] for record in records]

    def test_an_order_that_is_confirmed_is_stored(self):
        answers = [self.place("bicycle"), self.place("bell")]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert [answer.json()["number"] for answer in answers] == [0, 1]
        assert self.stored() == ["bicycle", "bell"]

    def test_a_lost_answer_stores_no_order_twice(self):
        with self.kafka_broker.drop_answer(Produce, times=1) as lost:
            assert self.place("bicycle").status_code == 201
        assert lost.count == 1
        assert self.stored() == ["bicycle"]

    def test_a_refusal_is_told(self):
        with self.kafka_broker.fail(Produce, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            answer = self.place("bicycle")
        assert answer.status_code == 503
        assert self.stored() == []

    def test_while_the_broker_is_dead_customers_are_told_in_time(self):
        with self.kafka_broker.killed(), override_settings(KAFKA_PATIENCE_SECONDS=0.5):
            assert self.place("bicycle").status_code == 503
        assert self.place("bell").status_code == 201
        assert self.stored() == ["bell"]
