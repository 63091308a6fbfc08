"""Delayed records listed and cancelled from the command line, by authorised users."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no delays")

Place = tuple[int | None, int | None]
Lines = list[dict[str, Any]]
TOPIC = "reminders"
PASSWORD = "secret"
USER = {"key.index.user": "operator", "key.index.password": PASSWORD}
DELAY = "1h"


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def broker(tmp_path: Path, port: int, request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    more = getattr(request, "param", USER)
    process = ours(tmp_path, {"key.index.port": str(port), **more})
    process.start()
    admin = AdminClient({"bootstrap.servers": process.bootstrap})
    create_topic(admin, TOPIC, 2, {"delivery.delay.enable": "true"})
    yield process
    process.kill()


def send(broker: BrokerProcess, *ids: str, transaction: str | None = None) -> list[Place]:
    """Records that wait, in both partitions by turns; returns their places."""
    more = {} if transaction is None else {"transactional.id": transaction}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", **more})
    places: list[Place] = []
    if transaction is not None:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number, message_id in enumerate(ids):
        producer.produce(
            TOPIC,
            value=f"value of {message_id}",
            partition=number % 2,
            headers=[("deliver-after", DELAY.encode()), ("message-id", message_id.encode())],
            on_delivery=lambda _, message: places.append((message.partition(), message.offset())),
        )
        producer.flush(60)
    if transaction is not None:
        producer.commit_transaction(60)
    return places


def run(port: int, *arguments: str, password: str = PASSWORD) -> tuple[int, Lines, str]:
    """Return the exit code, the output line by line, and the errors."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "broker.delivery", *arguments),
            *("--topic", TOPIC, "--endpoint", f"http://127.0.0.1:{port}", "--user", "operator"),
        ],
        cwd=REPOSITORY,
        env={**os.environ, "KEY_INDEX_PASSWORD": password},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_delayed_records_are_listed_and_cancelled(broker: BrokerProcess, port: int) -> None:
    places = send(broker, "a", "b", "c", "d")
    in_transaction = send(broker, "e", "f", transaction="t")

    code, listed, _ = run(port, "list")
    assert code == 0
    assert [(one["partition"], one["offset"]) for one in listed] == [
        *(places[0], places[2], in_transaction[0]),
        *(places[1], places[3], in_transaction[1]),
    ]
    assert listed[0]["value"] == "value of a"
    assert ["message-id", "a"] in listed[0]["headers"]
    assert listed[0]["due"] - listed[0]["timestamp"] >= 3_600_000

    code, found, _ = run(port, "cancel", "--id", "b")
    assert (code, [(one["partition"], one["offset"]) for one in found]) == (0, [places[1]])
    partition, offset = in_transaction[0]
    code, _, _ = run(port, "cancel", "--partition", str(partition), "--offset", str(offset))
    assert code == 0
    code, _, error = run(port, "cancel", "--id", "b")
    assert (code, "no record with the id b" in error) == (1, True)

    values = [one["value"] for one in run(port, "list")[1]]
    assert values == ["value of a", "value of c", "value of d", "value of f"]
    code, _, error = run(port, "cancel", "--partition", "0", "--offset", "77")
    assert (code, "no record waits" in error) == (1, True)


@pytest.mark.parametrize("broker", [{}], indirect=True)
def test_without_a_user_delayed_records_can_only_be_listed(
    broker: BrokerProcess, port: int
) -> None:
    ((partition, offset),) = send(broker, "a")

    assert len(run(port, "list", "--id", "a")[1]) == 1
    assert run(port, "list", "--id", "z")[:2] == (0, [])
    code, _, error = run(port, "cancel", "--partition", str(partition), "--offset", str(offset))
    assert (code, "cancelling takes key.index.user" in error) == (1, True)


AUTHORIZED = {
    **USER,
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.mark.parametrize("broker", [AUTHORIZED], indirect=True)
def test_the_authorizer_is_asked(broker: BrokerProcess, port: int) -> None:
    send(broker, "a")

    code, _, error = run(port, "list")
    assert (code, "403 User:operator may not read reminders" in error) == (1, True)
    code, _, error = run(port, "cancel", "--partition", "0", "--offset", "0")
    assert (code, "403 User:operator may not write reminders" in error) == (1, True)
    assert "401" in run(port, "list", password=PASSWORD[1:])[2]
