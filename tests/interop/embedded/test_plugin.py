"""The pytest plugin in test suites of its users, run by pytester."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

# pytester forgets what is first imported within it.
import broker.embedded.engines.on_thread
import broker.embedded.security  # noqa: F401
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

WAIT_SECONDS = 60
OPTIONS = (
    "-p",
    "broker.embedded.pytest_plugin.plugin",
    "-p",
    "no:randomly",
    "-p",
    "no:timeout",
    "-p",
    "no:cacheprovider",
    "-W",
    "error",
)
SEND = """
from confluent_kafka import Producer

def send(address, topic, value=b"one"):
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(20) == 0
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(send=SEND)
    pytester.syspathinsert()
    return pytester


def run(suite: pytest.Pytester, *options: str) -> pytest.RunResult:
    return suite.runpytest_inprocess(*OPTIONS, *options)


def test_a_broker_for_the_session_and_a_topic_for_each_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        from send import send

        seen = set()

        def test_one(kafka_broker, kafka_topic):
            seen.add((kafka_broker.bootstrap_servers, kafka_topic))
            send(kafka_broker.bootstrap_servers, kafka_topic)
            assert [one.value for one in kafka_broker.records(kafka_topic)] == [b"one"]

        class TestTwo:
            def test_two(self, kafka_topic, kafka_broker):
                seen.add((kafka_broker.bootstrap_servers, kafka_topic))
                assert kafka_broker.topics() == {kafka_topic: 1}

        def test_all():
            addresses, topics = zip(*seen)
            assert (len(set(addresses)), len(set(topics))) == (1, 2)
        """
    )
    threads = set(threading.enumerate())

    run(suite).assert_outcomes(passed=3)

    assert set(threading.enumerate()) <= threads


def test_markers_ask_for_brokers_and_topics(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.kafka(config={"message.max.bytes": 5000})

        def test_as_the_module(kafka_broker):
            assert kafka_broker.config["message.max.bytes"] == "5000"

        @pytest.mark.kafka(config={"num.partitions": 4}, storage="memory")
        def test_both(kafka_broker):
            assert kafka_broker.config["message.max.bytes"] == "5000"
            assert kafka_broker.config["num.partitions"] == "4"
            assert str(kafka_broker.log_dir).startswith("/dev/shm")

        @pytest.mark.kafka(partitions=3, topic_config={"retention.ms": 1000})
        def test_topic(kafka_topic, kafka_broker):
            assert kafka_broker.topics() == {kafka_topic: 3}

        def test_topic_alone(kafka_topic, request):
            broker = request.getfixturevalue("kafka_broker")
            assert broker.config["message.max.bytes"] == "5000"
            assert broker.topics() == {kafka_topic: 1}

        @pytest.mark.kafka(brokers=2)
        def test_on_a_cluster(kafka_topic, kafka_admin):
            metadata = kafka_admin.list_topics(timeout=10)
            assert len(metadata.brokers) == 2
            assert len(metadata.topics[kafka_topic].partitions[0].replicas) == 2
        """
    )
    run(suite, "--strict-markers").assert_outcomes(passed=5)


def test_security_is_asked_for_and_known_to_clients(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from confluent_kafka import Producer

        @pytest.mark.kafka(security="sasl_ssl")
        def test_broker(kafka_broker, kafka_topic, kafka_admin):
            assert kafka_broker.security.protocol == "SASL_SSL"
            producer = Producer({**kafka_broker.client_config, "log_level": 0})
            producer.produce(kafka_topic, "one")
            assert producer.flush(20) == 0
            assert kafka_topic in kafka_admin.list_topics(timeout=10).topics
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_options_of_the_command_line_and_the_ini_file(suite: pytest.Pytester) -> None:
    suite.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        kafka_config = ["num.partitions=5", "message.max.bytes=4000"]
        kafka_brokers = "2"
        kafka_storage = "memory"
        """
    )
    suite.makepyfile(
        """
        def test_broker(kafka_broker):
            assert kafka_broker.config["num.partitions"] == "7"
            assert kafka_broker.config["message.max.bytes"] == "4000"
            assert str(kafka_broker.log_dir).startswith("/dev/shm")

        def test_cluster(kafka_cluster):
            assert len(kafka_cluster.brokers) == 2
        """
    )
    run(suite, "--kafka-config", "num.partitions=7").assert_outcomes(passed=2)


def test_the_log_of_the_time_of_a_failed_test_is_in_its_report(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_before(kafka_broker):
            kafka_broker.create_topic("before")

        def test_failed(kafka_broker):
            kafka_broker.create_topic("within")
            assert False
        """
    )
    result = run(suite)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Kafka broker log (kafka_broker)*", "*topic within created*"])
    result.stdout.no_fnmatch_line("*topic before created*")


def test_logs_that_pytest_captures_are_those_that_a_test_would_have_anyway(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile(
        """
        from broker.testing import Produce
        from send import send

        def test_starts_it(kafka_broker):
            pass

        def test_it(kafka_broker, kafka_topic, caplog):
            kafka_broker.disconnect(Produce, times=1)
            send(kafka_broker.bootstrap_servers, kafka_topic)
            (record,) = [one for one in caplog.records if one.name.startswith("broker")]
            assert record.levelname == "WARNING"
        """
    )
    run(suite).assert_outcomes(passed=2)


def test_fixtures_of_the_users_own_scopes_may_stand_on_the_broker(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def orders(kafka_broker):
            kafka_broker.create_topic("orders")
            return "orders"

        @pytest.mark.kafka(config={"num.partitions": 2})
        def test_marked(orders, kafka_broker):
            assert kafka_broker.topics() == {"orders": 1}

        def test_unmarked(orders, kafka_broker):
            assert kafka_broker.topics() == {"orders": 1}
        """
    )
    run(suite).assert_outcomes(passed=2)


def test_the_broker_of_a_test_that_kills_it_is_no_error(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_one(kafka_broker, kafka_topic):
            kafka_broker.kill()
        """
    )
    run(suite).assert_outcomes(passed=1)


def test_a_killed_broker_is_up_again_for_the_next_test(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_one(kafka_broker):
            kafka_broker.kill()

        def test_two(kafka_cluster):
            kafka_cluster.kill(0)

        def test_three(kafka_broker, kafka_cluster):
            assert kafka_broker.is_running
            assert len(kafka_cluster.live) == 3

        def test_four(kafka_broker):
            kafka_broker.pause()

        def test_five(kafka_broker, kafka_topic):
            assert kafka_topic in kafka_broker.topics()
        """
    )
    run(suite).assert_outcomes(passed=5)


def test_each_worker_of_xdist_has_its_own(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import os
        import pytest
        from send import send

        @pytest.mark.parametrize("number", range(4))
        def test_it(kafka_broker, kafka_topic, number):
            send(kafka_broker.bootstrap_servers, kafka_topic)
            assert len(kafka_broker.requests.of(_produce())) == 1
            assert len(kafka_broker.topics()) == 1
            kafka_broker.requests.clear()

        def _produce():
            from broker.testing import Produce
            return Produce
        """
    )
    run(suite, "-n", "2").assert_outcomes(passed=4)


def test_an_interrupted_run_leaves_nothing_behind(suite: pytest.Pytester, tmp_path: Path) -> None:
    suite.makepyfile(
        """
        import time

        def test_it(kafka_broker, kafka_cluster):
            print("begun", flush=True)
            for _ in range(600):  # one long sleep ends early only if the main thread is told
                time.sleep(0.1)
        """
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "pytest", "-s", *OPTIONS, "--kafka-isolation=process"]
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert any("begun" in line for line in running.stdout)
        assert len(list(tmp_path.glob("embedded-*"))) == 2

        running.send_signal(signal.SIGINT)

        said, _ = running.communicate(timeout=WAIT_SECONDS)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == pytest.ExitCode.INTERRUPTED, said
    assert list(tmp_path.glob("embedded-*")) == []
    assert "Error" not in said


def test_pytest_without_a_kafka_test_does_not_import_the_broker(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    suite.makepyfile(
        """
        import sys

        def test_it():
            assert not [name for name in sys.modules if name.startswith("broker.app")]
        """
    )
    suite.runpytest_subprocess(*OPTIONS).assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [(), ("--kafka-isolation=process",)])
def test_faults_and_full_disks_end_with_the_test_that_has_made_them(
    suite: pytest.Pytester, options: tuple[str, ...]
) -> None:
    suite.makepyfile(
        """
        import pytest
        from broker.testing import ErrorCode, Produce
        from confluent_kafka import Producer
        from send import send

        def test_one(kafka_broker):
            kafka_broker.fail(Produce, ErrorCode.INVALID_RECORD)
            kafka_broker.fill_disk()

        def test_two(kafka_broker, kafka_topic):
            send(kafka_broker.bootstrap_servers, kafka_topic)
            assert [one.value for one in kafka_broker.records(kafka_topic)] == [b"one"]
            assert len(kafka_broker.requests.of(Produce)) == 1

        def test_three(kafka_broker):
            assert len(kafka_broker.requests) == 0

        @pytest.fixture
        def sent(kafka_broker, kafka_topic):
            send(kafka_broker.bootstrap_servers, kafka_topic)

        def test_requests_of_its_fixtures_are_seen(kafka_broker, sent):
            assert len(kafka_broker.requests.of(Produce)) == 1

        def test_has_it_give_up(kafka_broker, kafka_topic):
            producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
            kafka_broker.fill_disk()
            producer.produce(kafka_topic, "one")
            while kafka_broker.is_running:
                producer.flush(0.01)

        def test_it_has_another_life(kafka_broker, kafka_topic):
            send(kafka_broker.bootstrap_servers, kafka_topic)

        def test_stops_it(kafka_broker):
            kafka_broker.stop()

        def test_is_there_again(kafka_broker, kafka_topic):
            send(kafka_broker.bootstrap_servers, kafka_topic)
        """
    )
    run(suite, *options).assert_outcomes(passed=8)
