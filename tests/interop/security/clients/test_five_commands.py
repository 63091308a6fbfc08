"""What docs/security.md says of `make secure`, done: a secured broker, and its clients."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from tests.interop.clients import kcat
from tests.interop.conftest import against_apache, eventually
from tests.support import jars
from tests.support.brokers.broker_process import BrokerProcess, free_port, write_properties
from tests.support.jars import REPOSITORY
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(against_apache(), reason="it is about our own script")

SCRIPT = REPOSITORY / "scripts" / "secure.py"
SECONDS = 120.0
TIMEOUT = ("--timeout-ms", "60000")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(NamedTuple):
    """A running broker, and the files of its clients."""

    bootstrap: str
    files: Path

    def librdkafka(self, user: str) -> dict[str, str]:
        """A user's settings, read as the document does it."""
        lines = (self.files / f"{user}.librdkafka").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Start a broker with the files that the script wrote."""
    directory = tmp_path_factory.mktemp("secure")
    port = free_port()
    command = [sys.executable, str(SCRIPT), str(directory), "--port", str(port)]
    subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    start = [sys.executable, "-m", "broker", "--config", str(directory / "server.properties")]
    override = ["--override", f"log.dirs={directory}/data"]
    broker = BrokerProcess("secured", [*start, *override], directory, port)
    broker.working_directory = REPOSITORY
    found = Secured(f"localhost:{port}", directory)
    broker.launch()
    try:
        admin = AdminClient({**found.librdkafka("admin"), "log_level": 0})
        eventually(lambda: _serves(admin))
        yield found
        broker.stop()
    finally:
        broker.kill()


def _serves(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    """Return Apache Kafka's tools."""
    found = Tools(jars.KAFKA_4)
    yield found
    found.close()


def test_commands_of_the_document_do_what_it_says(secured: Secured, tools: Tools) -> None:
    at = ("--bootstrap-server", secured.bootstrap)
    admin = (*at, "--command-config", str(secured.files / "admin.properties"))
    alice = ("-F", str(secured.files / "alice.librdkafka"))
    tools.check("topics", *admin, "--create", "--topic", "orders")
    with pytest.raises(AssertionError, match="Topic authorization failed"):
        kcat.run(*alice, "-P", "-t", "orders", stdin="too early\n")

    grant = ("--producer", "--consumer", "--topic", "orders", "--group", "readers")
    tools.check("acls", *admin, "--add", "--allow-principal", "User:alice", *grant)
    kcat.run(*alice, "-P", "-t", "orders", stdin="hello\n")

    assert kcat.run(*alice, "-C", "-t", "orders", "-e") == "hello\n"
    _check_python(secured)
    _check_java(secured, tools)
    _check_new_user(secured, tools, admin)


def _check_python(secured: Secured) -> None:
    settings = secured.librdkafka("alice")
    consumer = Consumer(settings | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(SECONDS)
    assert message is not None
    assert message.value() == b"hello"
    consumer.close()
    other = KafkaConsumer(
        "orders",
        bootstrap_servers=secured.bootstrap,
        group_id="readers",
        auto_offset_reset="earliest",
        security_protocol="SASL_SSL",
        ssl_cafile=str(secured.files / "ca.pem"),
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password=settings["sasl.password"],
    )
    assert other.topics() == {"orders"}
    other.close()


def _check_java(secured: Secured, tools: Tools) -> None:
    config = ("--command-config", str(secured.files / "alice.properties"))
    at = ("--bootstrap-server", secured.bootstrap, "--topic", "orders", *config)
    here = ("--partition", "0", "--offset", "earliest")
    read = tools.check("console-consumer", *at, *here, "--max-messages", "1", *TIMEOUT)
    assert read.lines == ["hello"]


def _check_new_user(secured: Secured, tools: Tools, admin: tuple[str, ...]) -> None:
    """Bob is made with SCRAM, and may write to all topics that begin with a word."""
    about = ("--alter", "--entity-type", "users", "--entity-name", "bob")
    tools.check("configs", *admin, *about, "--add-config", "SCRAM-SHA-512=[password=bobs-own]")
    grant = ("--producer", "--topic", "orders.", "--resource-pattern-type", "prefixed")
    tools.check("acls", *admin, "--add", "--allow-principal", "User:bob", *grant)
    mine = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.files / "ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} required username="bob" password="bobs-own";',
    }
    config = write_properties(secured.files / "bob.properties", mine)
    at = ("--bootstrap-server", secured.bootstrap, "--command-config", str(config))
    tools.check("console-producer", *at, "--topic", "orders.bob", stdin="from bob\n")
    refused = tools.run("topics", *at, "--create", "--topic", "elsewhere")
    assert refused.exit_code == 1
    assert "Authorization failed" in refused.output + refused.errors
