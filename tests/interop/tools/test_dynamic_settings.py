"""Settings of one broker, and levels of its loggers, that change while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually

if TYPE_CHECKING:
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

TIMEOUT_SECONDS = 120.0
TOPIC = "bounded"
LARGE = b"x" * 5000


def on_broker(broker: BrokerProcess) -> tuple[str, ...]:
    return (
        *("--bootstrap-server", broker.bootstrap),
        *("--entity-type", "brokers", "--entity-name", "0"),
    )


def described(tools: Tools, broker: BrokerProcess, key: str) -> str:
    """The line of a key, without the default that ends it."""
    shown = tools.check("configs", "--describe", "--all", *on_broker(broker)).lines
    line = next(line.strip() for line in shown if line.strip().startswith(f"{key}="))
    return line.split(" synonyms={")[1].split(", DEFAULT_CONFIG")[0]


def is_taken(bootstrap: str) -> bool:
    """Return whether a record of 5 KB is accepted."""
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    failures: list[bool] = []
    producer.produce(TOPIC, LARGE, on_delivery=lambda error, _: failures.append(error is not None))
    assert producer.flush(TIMEOUT_SECONDS) == 0
    return failures == [False]


def test_a_setting_holds_at_once_and_after_a_restart(
    own_broker: BrokerProcess, tools_3: Tools
) -> None:
    own_broker.start()
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap, "log_level": 0})
    create_topic(admin, TOPIC, 1)
    assert is_taken(own_broker.bootstrap)

    tools_3.check(
        *("configs", "--alter", *on_broker(own_broker)),
        *("--add-config", "message.max.bytes=2000"),
    )
    eventually(lambda: not is_taken(own_broker.bootstrap))
    setting = "DYNAMIC_BROKER_CONFIG:message.max.bytes=2000"
    assert described(tools_3, own_broker, "message.max.bytes") == setting

    own_broker.kill()
    own_broker.start()
    assert not is_taken(own_broker.bootstrap)
    assert described(tools_3, own_broker, "message.max.bytes") == setting

    tools_3.check(
        *("configs", "--alter", *on_broker(own_broker)),
        *("--delete-config", "message.max.bytes"),
    )
    eventually(lambda: is_taken(own_broker.bootstrap))


@pytest.mark.skipif(against_apache(), reason="its loggers have other names")
def test_logger_level_is_described_set_refused_and_deleted(tools: Tools, bootstrap: str) -> None:
    loggers = ("--bootstrap-server", bootstrap, "--entity-type", "broker-loggers")
    own = (*loggers, "--entity-name", "0")
    name = "broker.handlers.topics.create_topics"

    def told() -> str:
        lines = tools.check("configs", "--describe", *own).lines
        return next(line.split("=")[1].split()[0] for line in lines if f" {name}=" in f" {line}")

    assert told() == "INFO"
    tools.check("configs", "--alter", *own, "--add-config", f"{name}=DEBUG")
    assert told() == "DEBUG"
    refused = tools.run("configs", "--alter", *own, "--add-config", f"{name}=LOUD")
    assert "is not a supported log level" in refused.output + refused.errors
    tools.check("configs", "--alter", *own, "--delete-config", name)
    assert told() == "INFO"
