"""kafka-configs replaces a certificate of a running broker; a wrong one changes nothing."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import Encoding

from tests.interop.conftest import eventually
from tests.support.certificates import PASSWORD
from tests.support.security.realm import PASSWORDS
from tests.support.security.secured_brokers import OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker
    from tests.support.tools import Tools

pytestmark = pytest.mark.java

JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
LOGIN_SECONDS = 10.0
PREFIX = "listener.name.sasl_ssl.ssl.keystore."
BROKER = ("--entity-type", "brokers", "--entity-name", "0")


@pytest.fixture
def broker(realm: Realm, tmp_path: Path) -> Iterator[SecuredBroker]:
    made = secured_broker(OURS, tmp_path, realm, {"password.encoder.secret": "of the cluster"})
    made.process.start()
    yield made
    made.process.kill()


def shown_by(port: int) -> bytes:
    """The certificate that a listener shows."""
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("localhost", port), timeout=60))


def der(realm: Realm, name: str) -> bytes:
    return realm.user(name).certificate.public_bytes(Encoding.DER)


def test_a_listeners_key_store_is_changed_and_stays_so(
    broker: SecuredBroker, realm: Realm, tools: Tools
) -> None:
    server = ("--bootstrap-server", broker.ports.bootstrap("PLAINTEXT"))
    before, port = shown_by(broker.ports.sasl_ssl), broker.ports.sasl_ssl
    assert before == der(realm, "admin")
    stores = {name: realm.user(name).pkcs12() for name in ("alice", "admin")}

    def set_store(location: object, password: str) -> int:
        settings = f"{PREFIX}location={location},{PREFIX}password={password},{PREFIX}type=PKCS12"
        return tools.run("configs", *server, "--alter", *BROKER, "--add-config", settings).exit_code

    assert set_store("/no/such/store.p12", PASSWORD) != 0
    assert set_store(stores["admin"], "another password") != 0
    assert shown_by(port) == before
    assert "/no/such" not in tools.check("configs", *server, "--describe", *BROKER).output

    other = realm.authority.issue("admin", realm.directory / "renewed")
    other.directory.mkdir(exist_ok=True)
    assert set_store(other.pkcs12(), PASSWORD) == 0
    eventually(lambda: shown_by(port) != before)
    renewed = shown_by(port)
    assert shown_by(broker.ports.ssl) == before, "another listener keeps its own"

    broker.process.stop()
    broker.process.start()
    assert shown_by(port) == renewed

    keys = ",".join(f"{PREFIX}{part}" for part in ("location", "password", "type"))
    tools.check("configs", *server, "--alter", *BROKER, "--delete-config", keys)
    eventually(lambda: shown_by(port) == before)


def logs_in(broker: SecuredBroker, password: str) -> bool:
    """Return whether PLAIN lets alice in with this password."""
    admin = AdminClient(
        {
            "bootstrap.servers": broker.ports.bootstrap("SASL_PLAINTEXT"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": password,
            "log_level": 0,
        }
    )
    try:
        admin.list_topics(timeout=LOGIN_SECONDS)
    except KafkaException:  # librdkafka tries again until its time is up
        return False
    return True


@pytest.mark.slow
def test_sasl_settings_of_an_open_listener_hold_from_the_next_start_on(
    broker: SecuredBroker, tools_3: Tools
) -> None:
    server = ("--bootstrap-server", broker.ports.bootstrap("PLAINTEXT"))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    setting = f'{JAAS}=[{module} required user_alice="renewed";]'
    tools_3.check("configs", *server, "--alter", *BROKER, "--add-config", setting)
    assert logs_in(broker, PASSWORDS["alice"])
    assert not logs_in(broker, "renewed")

    broker.process.stop()
    broker.process.start()
    assert logs_in(broker, "renewed")
    assert not logs_in(broker, PASSWORDS["alice"])
    assert "renewed" not in broker.process.output_path.read_text()
