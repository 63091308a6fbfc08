"""The other shapes in which a test suite may have its broker, run by pytester."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.interop.embedded.test_plugin import run, suite

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]
__all__ = ["suite"]


def test_unittest_has_a_mixin(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import unittest
        from broker.testing import KafkaTestMixin
        from send import send

        class TestOrders(KafkaTestMixin, unittest.TestCase):
            kafka_config = {"num.partitions": 2}

            def test_one(self):
                send(self.kafka_broker.bootstrap_servers, self.kafka_topic)
                self.assertEqual(len(self.kafka_broker.records(self.kafka_topic)), 1)

            def test_two(self):
                self.assertEqual(self.kafka_broker.topics(), {self.kafka_topic: 1})
        """
    )
    run(suite).assert_outcomes(passed=2)


def test_faults_set_by_a_unittest_test_end_with_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import contextlib
        import unittest
        from broker.testing import EmbeddedBrokerError, ErrorCode, KafkaTestMixin, Produce
        from send import send

        class TestOrders(KafkaTestMixin, unittest.TestCase):
            kafka_storage = "memory"

            def tearDown(self):
                send(self.kafka_broker.bootstrap_servers, self.kafka_topic)

            def test_1(self):
                self.assertTrue(str(self.kafka_broker.log_dir).startswith("/dev/shm"))

            def test_2_requests_are_those_of_this_test(self):
                self.assertEqual(len(self.kafka_broker.requests), 0)

        class TestFaults(KafkaTestMixin, unittest.TestCase):
            def test_1_killed(self):
                self.kafka_broker.kill()

            def test_2_paused(self):
                self.kafka_broker.pause()

            def test_3_without_room(self):
                self.kafka_broker.fill_disk()
                with contextlib.suppress(EmbeddedBrokerError):  # it may have given up by then
                    self.kafka_broker.create_topic("orders")

            def test_4_failing(self):
                self.kafka_broker.fail(Produce, ErrorCode.INVALID_RECORD)

            def test_5_well(self):
                send(self.kafka_broker.bootstrap_servers, self.kafka_topic)
        """
    )
    run(suite).assert_outcomes(passed=7)


def test_coroutines_of_unittest_have_a_broker(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import unittest
        from aiokafka import AIOKafkaProducer
        from broker.testing import KafkaTestMixin

        class TestOrders(KafkaTestMixin, unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self):
                address = self.kafka_broker.bootstrap_servers
                self.producer = AIOKafkaProducer(bootstrap_servers=address)
                await self.producer.start()
                self.addAsyncCleanup(self.producer.stop)

            async def test_one(self):
                await self.producer.send_and_wait(self.kafka_topic, b"one")
                self.assertEqual(len(self.kafka_broker.records(self.kafka_topic)), 1)
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_testcontainers_users_swap_one_import(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from broker.testing import KafkaContainer
        from send import send

        def test_it():
            with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_env(
                "KAFKA_AUTO_CREATE_TOPICS_ENABLE", "true"
            ).with_envs(
                KAFKA_HEAP_OPTS="-Xmx1g",
                KAFKA_LISTENERS="PLAINTEXT://0.0.0.0:9093",
                KAFKA_NUM_PARTITIONS="3",
            ).with_name("kafka").with_kraft() as kafka:
                address = kafka.get_bootstrap_server()
                send(address, "orders")
                host, port = address.split(":")
                assert host == kafka.get_container_host_ip()
                assert int(port) == kafka.get_exposed_port(9093)
                out, _ = kafka.get_logs()
                assert b"topic orders auto-created: partitions 3" in out
        """
    )
    run(suite).assert_outcomes(passed=1)
