"""Secrets of a secured broker are seen in no log line, setting, metric or command line."""

from __future__ import annotations

import contextlib
import socket
import ssl
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.support.brokers.broker_process import free_port
from tests.support.certificates import PASSWORD
from tests.support.security.realm import PASSWORDS
from tests.support.security.secured_brokers import OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker

WAIT_SECONDS = 60.0
LOGIN_SECONDS = 5.0
ENCODER_SECRET, TOKEN_SECRET = "sesame-of-the-encoder", "sesame-of-the-tokens"
DYNAMIC, GUESSED = "sesame-set-while-it-runs", "sesame-that-is-wrong"
KEYS = {
    "password.encoder.secret": ENCODER_SECRET,
    "delegation.token.secret.key": TOKEN_SECRET,
    "my.plugin.password": "sesame-of-a-plug-in",
    "listener.name.later.plain.sasl.jaas.config": 'module required password="sesame-of-later";',
}
SECRETS = (
    *PASSWORDS.values(),
    *(PASSWORD, ENCODER_SECRET, TOKEN_SECRET, DYNAMIC, GUESSED),
    *("sesame-of-a-plug-in", "sesame-of-later"),
)


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def broker(realm: Realm, tmp_path: Path, metrics_port: int) -> Iterator[SecuredBroker]:
    made = secured_broker(OURS, tmp_path, realm, {**KEYS, "metrics.port": str(metrics_port)})
    made.process.command += ["--log-level", "DEBUG"]
    made.start()
    yield made
    made.process.kill()


def log_in(broker: SecuredBroker, mechanism: str, password: str) -> None:
    """Log in, with a right or wrong password: only the log matters."""
    client: dict[str, str | int | float | bool] = {
        "bootstrap.servers": broker.ports.bootstrap("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": password,
        "log_level": 0,
    }
    with contextlib.suppress(KafkaException):
        AdminClient(client).list_topics(timeout=LOGIN_SECONDS)


def alter(admin: AdminClient, name: str, value: str) -> str:
    """Set a key of the broker; returns the refusal, if it was one."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)
    except KafkaException as refused:
        return str(refused)
    return ""


def test_secrets_are_seen_nowhere(broker: SecuredBroker, metrics_port: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.ports.bootstrap("PLAINTEXT")})
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        log_in(broker, mechanism, PASSWORDS["alice"])
        log_in(broker, mechanism, GUESSED)
    with socket.create_connection(("localhost", broker.ports.ssl)) as plain:
        plain.sendall(GUESSED.encode())
    with contextlib.suppress(ssl.SSLError, OSError):
        ssl.get_server_certificate(("localhost", broker.ports.sasl_plaintext), timeout=5)

    later, keystore = "listener.name.later.ssl.key.password", "listener.name.ssl.ssl.keystore"
    taken = alter(admin, later, DYNAMIC)
    # A listener without SASL reads nothing of it, so that anything is taken, as in Apache Kafka.
    taken += alter(admin, "listener.name.ssl.plain.sasl.jaas.config", GUESSED)
    refusals = [
        alter(admin, f"{keystore}.password", GUESSED),
        alter(admin, f"{keystore}.key", GUESSED),
        alter(admin, "ssl.key.password", GUESSED),
    ]
    assert taken == ""
    assert all(refusals)

    resource = ConfigResource(ResourceType.BROKER, "0")
    answer: Any = admin.describe_configs([resource])[resource].result(WAIT_SECONDS)
    described = [
        (entry.name, entry.value, [(s.name, s.value) for s in entry.synonyms.values()])
        for entry in answer.values()
    ]
    assert {name for name, _, _ in described} >= {later, *KEYS}
    metrics = urllib.request.urlopen(f"http://localhost:{metrics_port}/metrics").read().decode()
    seen = {
        "refusals": repr(refusals),
        "settings": repr(described),
        "metrics": metrics,
        "command line": Path(f"/proc/{broker.process.pid}/cmdline").read_text(),
    }
    broker.process.stop()
    seen["log"] = broker.process.output_path.read_text()
    stores = [p.read_bytes() for p in broker.process.data_directory.iterdir() if p.is_file()]
    seen["metadata"] = b"".join(stores).decode("latin-1")
    found = [
        (where, secret) for where, text in seen.items() for secret in SECRETS if secret in text
    ]
    assert found == []
