"""kafka-configs adds, moves and removes listeners of a running broker, or is refused."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.conftest import create_topic, eventually
from tests.support.brokers.broker_process import free_port, write_properties
from tests.support.security.access import Access
from tests.support.security.listeners import login_modules
from tests.support.security.secured_brokers import OURS, secured_broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.clients.record import Record
    from tests.support.brokers.trio import Trio
    from tests.support.security.realm import Realm
    from tests.support.security.secured_brokers import SecuredBroker
    from tests.support.tools import Outcome, Tools

pytestmark = [pytest.mark.java, pytest.mark.slow]

PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL"
PLAIN = "listener.name.external.plain.sasl.jaas.config"
MECHANISMS = "listener.name.external.sasl.enabled.mechanisms"
ACCESS = Access("SASL_SSL", "PLAIN")
TIMEOUT_SECONDS = 120.0
TOPIC = "seen-from-outside"


@pytest.fixture
def broker(realm: Realm, tmp_path: Path) -> Iterator[SecuredBroker]:
    made = secured_broker(OURS, tmp_path, realm, {"password.encoder.secret": "of the cluster"})
    made.start()
    yield made
    made.process.kill()


class Configs:
    """kafka-configs, on one broker."""

    def __init__(self, tools: Tools, *at: str) -> None:
        self._tools = tools
        self._at = ("configs", *at)

    def set(self, **keys: str) -> Outcome:
        text = ",".join(f"{name.replace('_', '.')}=[{value}]" for name, value in keys.items())
        return self.add(text)

    def add(self, text: str) -> Outcome:
        return self._tools.run(*self._at, "--alter", "--add-config", text)

    def delete(self, *keys: str) -> Outcome:
        return self._tools.run(*self._at, "--alter", "--delete-config", ",".join(keys))


def configs_of(tools: Tools, server: str, number: int, *more: str) -> Configs:
    entity = ("--entity-type", "brokers", "--entity-name", str(number))
    return Configs(tools, "--bootstrap-server", server, *entity, *more)


def is_refused(port: int) -> bool:
    """Return whether no listener is open on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def brokers_at(server: str, **settings: str) -> dict[int, int]:
    """Return the brokers' ports that a client gets there, by id; none without an answer."""
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0, **settings})
    found = admin.list_topics(timeout=TIMEOUT_SECONDS).brokers
    return {number: one.port for number, one in found.items()}


def send(server: str, count: int, **settings: Any) -> None:
    """Produce records acknowledged by all replicas in sync."""
    producer = Producer({"bootstrap.servers": server, "log_level": 0, **settings})
    failures: list[object] = []
    for number in range(count):
        producer.produce(TOPIC, b"%d" % number, on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(TIMEOUT_SECONDS) == 0
    assert failures == [None] * count


def read(broker: SecuredBroker, port: int, count: int) -> list[Record]:
    settings = ACCESS.librdkafka(broker.realm)
    return confluent.read(f"localhost:{port}", TOPIC, count, settings)


def test_a_secured_listener_comes_moves_and_goes(
    broker: SecuredBroker, tools_3: Tools, tmp_path: Path
) -> None:
    server = broker.ports.bootstrap("PLAINTEXT")
    configs = configs_of(tools_3, server, 0)
    create_topic(AdminClient({"bootstrap.servers": server}), TOPIC, 1)
    before, first, second = broker.ports.listeners(), free_port(), free_port()
    external = f"{before},EXTERNAL://localhost:{{}}"
    protocols = f"{PROTOCOLS},EXTERNAL:SASL_SSL"

    def listen_at(port: int) -> Outcome:
        listeners = f"listeners=[{external.format(port)}]"
        protection = f"listener.security.protocol.map=[{protocols}]"
        mechanisms = f"{MECHANISMS}=PLAIN"
        users = f"{PLAIN}=[{login_modules()['PLAIN']}]"
        return configs.add(f"{listeners},{protection},{mechanisms},{users}")

    with socket.socket() as other:
        other.bind(("127.0.0.1", first))
        other.listen()
        refused = listen_at(first)
        assert "already in use" in refused.output + refused.errors
    assert is_refused(first)
    assert brokers_at(server) == {0: broker.ports.plaintext}, "all is as it was"
    described = tools_3.check(
        *("configs", "--describe", "--bootstrap-server", server),
        *("--entity-type", "brokers", "--entity-name", "0"),
    )
    assert "EXTERNAL" not in described.output

    assert listen_at(first).exit_code == 0
    send(f"localhost:{first}", 1, **ACCESS.librdkafka(broker.realm))
    assert len(read(broker, first, 1)) == 1

    assert listen_at(second).exit_code == 0
    eventually(lambda: is_refused(first))
    assert len(read(broker, second, 1)) == 1

    broker.process.stop()
    broker.process.start()
    assert len(read(broker, second, 1)) == 1

    settings = write_properties(
        tmp_path / "external", Access("SASL_SSL", "PLAIN").java(broker.realm)
    )
    from_outside = configs_of(tools_3, f"localhost:{second}", 0, "--command-config", str(settings))
    keys = ("listeners", "listener.security.protocol.map", PLAIN, MECHANISMS)
    gone = from_outside.delete(*keys)
    assert gone.exit_code == 0, f"who removes a listener through itself hears of it: {gone}"
    assert is_refused(second)
    assert brokers_at(server) == {0: broker.ports.plaintext}
    eventually(lambda: "listener EXTERNAL removed: " in broker.process.output_path.read_text())


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"listeners": "SSL://localhost:{}"}, "must be one of the advertised listeners"),
        ({"listener_security_protocol_map": "PLAINTEXT:SSL"}, "no security protocol is given"),
        ({"listener_security_protocol_map": f"{PROTOCOLS},SSL:SASL_SSL"}, "cannot be updated"),
        ({"advertised_listeners": "SSL://localhost:1"}, "must be one of the advertised listeners"),
        ({"listeners": "{before},EXTERNAL://localhost:{}"}, "no security protocol is given"),
        (
            {
                "listeners": "{before},EXTERNAL://localhost:{}",
                "listener_security_protocol_map": f"{PROTOCOLS},EXTERNAL:SASL_SSL",
                "listener_name_external_ssl_keystore_location": "/no/such/store",
            },
            "/no/such/store",
        ),
    ],
)
def test_invalid_listener_changes_are_refused_without_effect(
    broker: SecuredBroker, tools: Tools, keys: dict[str, str], why: str
) -> None:
    server, port = broker.ports.bootstrap("PLAINTEXT"), free_port()
    before = broker.ports.listeners()
    told = {
        name: text.replace("{before}", before).replace("{}", str(port))
        for name, text in keys.items()
    }
    outcome = configs_of(tools, server, 0).set(**told)
    assert outcome.exit_code != 0
    assert why in outcome.output + outcome.errors
    assert is_refused(port)
    assert all(not is_refused(one) for one in broker.ports)
    assert brokers_at(server) == {0: broker.ports.plaintext}


def test_other_brokers_and_clients_learn_the_changed_listeners(trio: Trio, tools_3: Tools) -> None:
    created = AdminClient({"bootstrap.servers": trio.bootstrap})
    create_topic(created, TOPIC, 3, replicas=3)
    outside, moved = [free_port(), free_port()], free_port()
    protocols = "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT"

    def listen(number: int, *listeners: str) -> None:
        configs = configs_of(tools_3, trio.brokers[number].bootstrap, number)
        done = configs.set(listeners=",".join(listeners), listener_security_protocol_map=protocols)
        assert done.exit_code == 0, done

    for number, port in enumerate(outside):
        own = f"PLAINTEXT://{trio.brokers[number].bootstrap}"
        listen(number, own, f"EXTERNAL://127.0.0.1:{port}")
    eventually(lambda: brokers_at(f"127.0.0.1:{outside[0]}") == dict(enumerate(outside)))

    listen(2, f"PLAINTEXT://127.0.0.1:{moved}")
    eventually(lambda: brokers_at(trio.brokers[0].bootstrap)[2] == moved)
    assert is_refused(trio.brokers[2].port)
    send(trio.brokers[0].bootstrap, 30)
    assert len(confluent.read(trio.brokers[0].bootstrap, TOPIC, 30)) == 30

    for number in range(3):
        server = f"127.0.0.1:{moved}" if number == 2 else trio.brokers[number].bootstrap
        keys = ("listeners", "listener.security.protocol.map")
        assert configs_of(tools_3, server, number).delete(*keys).exit_code == 0
    ports = {number: one.port for number, one in enumerate(trio.brokers)}
    eventually(lambda: brokers_at(trio.brokers[0].bootstrap) == ports)
    assert all(is_refused(port) for port in (*outside, moved))
