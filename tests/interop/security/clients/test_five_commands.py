"""The steps of `make secure` in docs/security.md, carried out: a secured broker, its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer
from kafka import KafkaConsumer

from tests.interop.clients import kcat
from tests.interop.conftest import against_apache
from tests.support import jars
from tests.support.brokers.broker_process import write_properties
from tests.support.security.secure_script import ScriptedBroker, secured_by_script
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(against_apache(), reason="it is about our own script")

SECONDS = 120.0
TIMEOUT = ("--timeout-ms", "60000")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedBroker]:
    """Start a broker with the files that the script wrote."""
    with secured_by_script(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    """Return Apache Kafka's tools."""
    found = Tools(jars.KAFKA_4)
    yield found
    found.close()


def test_the_documented_commands_secure_a_broker(secured: ScriptedBroker, tools: Tools) -> None:
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


def _check_python(secured: ScriptedBroker) -> None:
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


def _check_java(secured: ScriptedBroker, tools: Tools) -> None:
    config = ("--command-config", str(secured.files / "alice.properties"))
    at = ("--bootstrap-server", secured.bootstrap, "--topic", "orders", *config)
    here = ("--partition", "0", "--offset", "earliest")
    read = tools.check("console-consumer", *at, *here, "--max-messages", "1", *TIMEOUT)
    assert read.lines == ["hello"]


def _check_new_user(secured: ScriptedBroker, tools: Tools, admin: tuple[str, ...]) -> None:
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
