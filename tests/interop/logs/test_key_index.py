"""Looking up records by key and by id in a running broker, as stock clients sent them."""

from __future__ import annotations

import base64
import http.client
import json
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

    NewBroker = Callable[..., BrokerProcess]

pytestmark = pytest.mark.skipif(against_apache(), reason="Apache Kafka has no such index")

INDEXED = {"key.index.enable": "true", "segment.bytes": "150000"}
PROPERTIES = {"key.index.check.interval.ms": "100", "log.segment.delete.delay.ms": "100"}
COUNT = 1000
KEYS = 50
FIRST_MS = 1_795_229_963_000


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def new_broker(tmp_path: Path, port: int) -> Iterator[NewBroker]:
    """Start brokers, one after the other, on one directory and with one port for look-ups."""
    brokers: list[BrokerProcess] = []

    def start(**more: str) -> BrokerProcess:
        properties = {**PROPERTIES, "key.index.port": str(port), **more}
        number = len(brokers)
        broker = ours(tmp_path / str(number), properties, data_directory=tmp_path / "data")
        brokers.append(broker)
        broker.start()
        return broker

    yield start
    for broker in brokers:
        broker.kill()


def create(broker: BrokerProcess, topic: str, partitions: int = 1, **more: str) -> None:
    config = {**INDEXED, **{name.replace("_", "."): value for name, value in more.items()}}
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), topic, partitions, config)


def value_of(number: int) -> str:
    """A kilobyte that compresses to half of it."""
    return f"value-{number}-{random.Random(number).randbytes(500).hex()}"


def produce(broker: BrokerProcess, topic: str, partition: int = 0, codec: str = "none") -> None:
    """Records 0 to 999 of 50 keys, each with an id of its own, a second apart."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "batch.size": 20000,
            "linger.ms": 20,
            "compression.type": codec,
        }
    )
    for number in range(COUNT):
        producer.produce(
            topic,
            key=f"key-{number % KEYS}",
            value=value_of(number),
            headers=[("message-id", f"id-{number}"), ("other", b"\xff")],
            timestamp=FIRST_MS + 1000 * number,
            partition=partition,
        )
    assert producer.flush(120) == 0


def ask(port: int, **parameters: object) -> tuple[int, bytes]:
    query = urlencode({name.replace("_", "."): value for name, value in parameters.items()})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", f"/records?{query}")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def look_up(port: int, **parameters: object) -> dict[str, Any]:
    status, body = ask(port, **parameters)
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def numbers(found: dict[str, Any]) -> list[int]:
    """The records that were found, by the numbers in their values."""
    return [int(record["value"].split("-")[1]) for record in found["records"]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the directory of the partition."""
    return tmp_path / "data" / "orders-0"


def indexed_segments(port: int, topic: str) -> int:
    found = look_up(port, topic=topic, key="nobody")
    return int(found["segments"] - found["segments_without_index"])


def until_indexed(port: int, topic: str) -> int:
    """Wait until all segments but the active one have an index; returns how many have."""

    def only_the_active_one_has_none() -> bool:
        return bool(look_up(port, topic=topic, key="nobody")["segments_without_index"] == 1)

    eventually(only_the_active_one_has_none)
    return indexed_segments(port, topic)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_all_records_of_a_key_are_found_with_an_index_and_without(
    new_broker: NewBroker, port: int, codec: str
) -> None:
    broker = new_broker()
    create(broker, "orders")
    produce(broker, "orders", codec=codec)
    expected = list(range(7, COUNT, KEYS))

    assert numbers(look_up(port, topic="orders", key="key-7")) == expected
    assert until_indexed(port, "orders") > 1
    assert numbers(look_up(port, topic="orders", key="key-7")) == expected

    found = look_up(port, topic="orders", id="id-123")
    assert numbers(found) == [123]
    assert found["records"][0] == {
        "partition": 0,
        "offset": 123,
        "timestamp": FIRST_MS + 123_000,
        "key": "key-23",
        "value": value_of(123),
        "headers": [["message-id", "id-123"], ["other", {"base64": "/w=="}]],
    }
    assert numbers(look_up(port, topic="orders", id="id-123", key="key-24")) == []
    assert numbers(look_up(port, topic="orders", key="id-123")) == []
    times = {"from": FIRST_MS + 107_000, "to": FIRST_MS + 257_000}
    assert numbers(look_up(port, topic="orders", key="key-7", **times)) == [107, 157, 207, 257]


def test_a_look_up_is_continued_where_its_limit_ended_it(new_broker: NewBroker, port: int) -> None:
    broker = new_broker()
    create(broker, "orders", partitions=2)
    for partition in range(2):
        produce(broker, "orders", partition)
    found: list[tuple[int, int]] = []
    start: str | None = "0:0"
    while start is not None:
        page = look_up(port, topic="orders", key="key-3", limit=7, start=start)
        assert len(page["records"]) <= 7
        found += [(record["partition"], record["offset"]) for record in page["records"]]
        start = page["next"]

    assert found == [(partition, at) for partition in range(2) for at in range(3, COUNT, KEYS)]


def test_damaged_key_indexes_are_not_used_and_rebuilt(
    new_broker: NewBroker, port: int, log: Path
) -> None:
    broker = new_broker()
    create(broker, "orders")
    produce(broker, "orders")
    count = until_indexed(port, "orders")
    paths = sorted(log.glob("*.keyindex"))
    assert len(paths) == count
    broker.kill()
    paths[0].write_bytes(b"")
    paths[1].write_bytes(paths[1].read_bytes()[:-1])
    flipped = bytearray(paths[2].read_bytes())
    flipped[len(flipped) - 4096] ^= 1  # in the last page, which is read for some keys only
    paths[2].write_bytes(flipped)
    paths[3].write_bytes(paths[4].read_bytes())
    paths[4].unlink()

    broker = new_broker()

    for key in range(KEYS):
        found = look_up(port, topic="orders", key=f"key-{key}")
        assert numbers(found) == list(range(key, COUNT, KEYS))
    assert until_indexed(port, "orders") == count
    assert "is rebuilt" in broker.output_path.read_text()


def test_compaction_takes_indexes_with_the_segments_that_it_replaces(
    new_broker: NewBroker, port: int, log: Path
) -> None:
    eager = {"log.cleaner.backoff.ms": "100", "log.index.size.max.bytes": "100000"}
    broker = new_broker(**{**eager, "log.cleaner.min.cleanable.ratio": "0.01"})
    create(broker, "orders", cleanup_policy="compact")
    produce(broker, "orders")

    def is_compacted() -> bool:
        try:
            return sum(path.stat().st_size for path in log.glob("*.log")) < 350_000
        except FileNotFoundError:  # it is being compacted
            return False

    eventually(is_compacted)

    for key in range(KEYS):
        assert numbers(look_up(port, topic="orders", key=f"key-{key}"))[-1] == COUNT - KEYS + key
    logs = {path.stem for path in log.glob("*.log")}
    assert {path.stem for path in log.glob("*.keyindex")} <= logs
    assert "is rebuilt" not in broker.output_path.read_text()


def test_invalid_look_ups_are_refused_with_a_reason(new_broker: NewBroker, port: int) -> None:
    broker = new_broker()
    create(broker, "orders")
    create(broker, "plain", key_index_enable="false")

    assert ask(port, topic="orders") == (400, b"key or id is missing\n")
    assert ask(port, key="a") == (400, b"topic is missing\n")
    assert ask(port, topic="orders", key="a", colour="red")[0] == 400
    assert ask(port, topic="orders", key="a", **{"from": "yesterday"})[0] == 400
    assert ask(port, topic="orders", key_base64="?")[0] == 400
    assert ask(port, topic="nowhere", key="a")[0] == 404
    assert ask(port, topic="orders", key="a", partition=5)[0] == 404
    assert ask(port, topic="plain", key="a")[0] == 409
    binary = base64.b64encode(b"\xff\x00").decode()
    assert ask(port, topic="orders", key_base64=binary)[0] == 200


def test_the_command_line_writes_a_line_for_each_record(new_broker: NewBroker, port: int) -> None:
    broker = new_broker(**{"key.index.user": "anna", "key.index.password": "sesame"})
    create(broker, "orders")
    produce(broker, "orders")
    command = [sys.executable, "-m", "broker.key_index", "--topic", "orders", "--key", "key-5"]
    command += ["--endpoint", f"http://127.0.0.1:{port}", "--user", "anna", "--limit", "3"]

    def run(password: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KEY_INDEX_PASSWORD": password}
        return subprocess.run(
            command,
            env=environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    found = run("sesame")
    assert found.returncode == 0, found.stderr
    assert [json.loads(line)["offset"] for line in found.stdout.splitlines()] == [5, 55, 105]
    refused = run("guessed")
    assert refused.returncode == 1
    assert "401" in refused.stderr
