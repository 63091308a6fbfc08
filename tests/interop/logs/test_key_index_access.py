"""Look-ups over TLS, by authorised users, and of partitions that several brokers lead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.certificates import Authority
from tests.support.jars import REPOSITORY
from tests.support.security import acls

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="Apache Kafka has no such index"),
    pytest.mark.slow,
]

TOPIC = "orders"
PASSWORD = "sesame"
CONFIG = {"key.index.enable": "true", "delivery.delay.enable": "true"}
Lines = list[dict[str, Any]]
Headers = dict[str, str | bytes | None]


def run(module: str, *arguments: str) -> tuple[int, Lines, str]:
    """Return the exit code, the output line by line, and the errors."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, "--topic", TOPIC, "--user", "anna"],
        env={**os.environ, "KEY_INDEX_PASSWORD": PASSWORD},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def produce(bootstrap: str, partitions: int) -> None:
    """Produce a record of the same key to each partition, and one delayed by an hour."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for partition in range(partitions):
        producer.produce(TOPIC, b"at once", "4711", partition=partition)
        headers: Headers = {"deliver-after": "1h", "message-id": "late"}
        producer.produce(TOPIC, b"later", "4711", partition=partition, headers=headers)
        assert producer.flush(60) == 0


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[BrokerProcess, tuple[str, ...]]]:
    """A broker with TLS and an authorizer, and the options by which it is asked."""
    authority, port = Authority(), free_port()
    (tmp_path / "ca.pem").write_text(authority.pem())
    broker = ours(
        tmp_path / "broker",
        {
            "key.index.port": str(port),
            "key.index.user": "anna",
            "key.index.password": PASSWORD,
            "key.index.ssl.enable": "true",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
            **authority.issue("broker", tmp_path).as_keystore(),
        },
    )
    broker.start()
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, 1, CONFIG)
    produce(broker.bootstrap, 1)
    options = "--endpoint", f"https://localhost:{port}", "--cafile", str(tmp_path / "ca.pem")
    yield broker, options
    broker.kill()


def test_look_ups_over_tls_need_read_on_the_topic(
    secured: tuple[BrokerProcess, tuple[str, ...]],
) -> None:
    broker, options = secured
    search = "broker.key_index", "--key", "4711"

    code, _, error = run(*search, *options[:2])
    assert (code, "CERTIFICATE_VERIFY_FAILED" in error) == (1, True)
    code, _, error = run(*search, *options)
    assert (code, "403 User:anna may not read orders" in error) == (1, True)
    acls.allow(broker.bootstrap, "anna", acls.TOPIC, TOPIC, acls.READ)
    eventually(lambda: run(*search, *options)[0] == 0)
    assert [line["value"] for line in run(*search, *options)[1]] == ["at once"]
    code, listed, _ = run("broker.delivery", "list", *options)
    assert (code, [line["value"] for line in listed]) == (0, ["later"])
    code, _, error = run("broker.delivery", "cancel", "--id", "late", *options)
    assert (code, "403 User:anna may not write orders" in error) == (1, True)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Two brokers, the first of which leads partition 0, and their endpoints."""
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    zookeeper.start()
    ports = free_port(), free_port()
    brokers = [
        ours(
            tmp_path / f"broker-{number}",
            {
                "broker.id": str(number),
                "zookeeper.connect": zookeeper.address,
                "key.index.port": str(port),
                "key.index.user": "anna",
                "key.index.password": PASSWORD,
            },
        )
        for number, port in enumerate(ports)
    ]
    for broker in brokers:
        broker.start()
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    eventually(lambda: len(admin.list_topics(timeout=60).brokers) == len(brokers))
    create_topic(admin, TOPIC, 2, CONFIG)
    yield bootstrap, (f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}")
    for process in (*brokers, zookeeper.process):
        process.kill()


def test_look_ups_at_several_brokers_cover_all_partitions(
    pair: tuple[str, tuple[str, str]],
) -> None:
    bootstrap, endpoints = pair
    produce(bootstrap, 2)
    both = [part for endpoint in endpoints for part in ("--endpoint", endpoint)]

    for module, *arguments in (("broker.key_index", "--key", "4711"), ("broker.delivery", "list")):
        code, found, error = run(module, *arguments, *both)
        assert (code, sorted(line["partition"] for line in found)) == (0, [0, 1]), error
        for endpoint in endpoints:
            code, found, error = run(module, *arguments, "--endpoint", endpoint)
            assert (code, len(found)) == (1, 1)
            assert f"partition {1 - found[0]['partition']} was not" in error

    for partition in ("0", "1"):  # one of the two is led by the broker that is asked second
        place = "--partition", partition, "--offset", "1"
        code, cancelled, error = run("broker.delivery", "cancel", *place, *both)
        assert (code, len(cancelled)) == (0, 1), error
    assert run("broker.delivery", "list", *both)[:2] == (0, [])
