"""kafka-configs sets SCRAM users and brokers' passwords, by the broker and in ZooKeeper itself."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from tests.interop.conftest import eventually
from tests.support.brokers.apache import apache_3
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

pytestmark = [pytest.mark.java, pytest.mark.slow]

LOGIN_SECONDS = 10.0
WAIT_SECONDS = 60.0
BOTH = "SCRAM-SHA-256=[iterations=8192,password=alice-secret],SCRAM-SHA-512=[password=alice-secret]"
SECRET = "of the cluster"
KEY_PASSWORD = "listener.name.internal.ssl.key.password"


class Place(NamedTuple):
    """Brokers of both makes for one ZooKeeper, to be started one at a time."""

    zookeeper: ZooKeeperServer
    ours: BrokerProcess
    apache: BrokerProcess
    sasl_port: int

    @property
    def server(self) -> tuple[str, str]:
        return ("--bootstrap-server", self.ours.bootstrap)

    def logs_in(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> bool:
        """Return whether our broker lets this user in."""
        admin = AdminClient(
            {
                "bootstrap.servers": f"127.0.0.1:{self.sasl_port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
                "log_level": 0,
            }
        )
        try:
            admin.list_topics(timeout=LOGIN_SECONDS)
        except KafkaException:  # librdkafka tries again until its time is up
            return False
        return True

    def described(self, user: str) -> dict[str, int]:
        """The iterations of a user's credentials, by mechanism."""
        admin = AdminClient({"bootstrap.servers": self.ours.bootstrap})
        answers = admin.describe_user_scram_credentials([user])
        assert isinstance(answers, dict)
        answer = answers[user].result(WAIT_SECONDS)
        return {info.mechanism.name: info.iterations for info in answer.scram_credential_infos}

    def stored(self, path: str) -> dict[str, str] | None:
        """Return the content of a configuration znode; None without one."""
        client = KazooClient(self.zookeeper.address)
        client.start()
        try:
            if client.exists(path) is None:
                return None
            found: dict[str, str] = json.loads(client.get(path)[0])["config"]
            return found
        finally:
            client.stop()
            client.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper")
    plain, sasl = free_port(), free_port()
    keys = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "zookeeper.connect": zookeeper.address,
        "zookeeper.session.timeout.ms": "6000",
        "password.encoder.secret": SECRET,
    }
    with ExitStack() as stack:
        stack.callback(zookeeper.kill)
        zookeeper.start()
        own = ours(tmp_path / "ours", keys, port=plain)
        apache = apache_3(tmp_path / "apache", zookeeper.port, keys, port=plain)
        for broker in (own, apache):
            stack.callback(broker.kill)
        yield Place(zookeeper, own, apache, sasl)


def user(name: str) -> tuple[str, ...]:
    return ("--entity-type", "users", "--entity-name", name)


def test_a_user_logs_in_as_soon_as_the_tool_has_set_her(place: Place, tools: Tools) -> None:
    place.ours.start()
    assert not place.logs_in("alice", "alice-secret")

    tools.check("configs", *place.server, "--alter", *user("alice"), "--add-config", BOTH)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert place.logs_in("alice", "alice-secret", mechanism)
    assert not place.logs_in("alice", "another secret")

    assert place.described("alice") == {"SCRAM_SHA_256": 8192, "SCRAM_SHA_512": 4096}
    shown = tools.check("configs", *place.server, "--describe", *user("alice")).output
    assert "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096" in shown

    gone = ("--delete-config", "SCRAM-SHA-256")
    tools.check("configs", *place.server, "--alter", *user("alice"), *gone)
    assert not place.logs_in("alice", "alice-secret")
    assert place.logs_in("alice", "alice-secret", "SCRAM-SHA-512")
    output = place.ours.output_path.read_text()
    stored = place.stored("/config/users/alice")
    assert stored is not None
    secrets = [part.partition("=")[2] for part in stored["SCRAM-SHA-512"].split(",")[:3]]
    assert [secret for secret in ("alice-secret", *secrets) if secret in output] == []


@pytest.mark.slow
def test_users_are_set_in_zookeeper_before_the_first_broker_and_beside_it(
    place: Place, tools_3: Tools
) -> None:
    direct = ("configs", "--zookeeper", place.zookeeper.address, "--alter")
    first, second = ("SCRAM-SHA-256=[password=one]", "SCRAM-SHA-256=[password=two]")
    tools_3.check(*direct, *user("bob c@d"), "--add-config", first)
    place.ours.start()
    assert place.logs_in("bob c@d", "one")

    tools_3.check(*direct, *user("bob c@d"), "--add-config", second)
    eventually(lambda: place.logs_in("bob c@d", "two"))
    assert not place.logs_in("bob c@d", "one")


def test_encrypted_passwords_are_exchanged_with_apache_kafka(place: Place, tools_3: Tools) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "0")
    direct = ("configs", "--zookeeper", place.zookeeper.address, "--alter")
    passwords = f"{KEY_PASSWORD}=sesame,password.encoder.secret={SECRET}"
    tools_3.check(*direct, *broker, "--add-config", passwords)

    place.ours.start()
    output = place.ours.output_path.read_text()
    assert "dynamic setting ignored" not in output
    assert "sesame" not in output
    of_apache = place.stored("/config/brokers/0")
    store_password = "listener.name.internal.ssl.keystore.password"
    ours_too = ("--add-config", f"{store_password}=open,{KEY_PASSWORD}=sesame")
    tools_3.check("configs", *place.server, "--alter", *broker, *ours_too)
    described = tools_3.check("configs", *place.server, "--describe", *broker).output
    assert f"{KEY_PASSWORD}=null sensitive=true" in described
    assert f"{store_password}=null sensitive=true" in described
    stored = place.stored("/config/brokers/0")
    assert stored is not None
    assert of_apache is not None
    assert stored[KEY_PASSWORD] != of_apache[KEY_PASSWORD], "each time with other salt"
    assert stored[store_password].startswith("keyFactoryAlgorithm:PBKDF2WithHmacSHA512,")
    tools_3.check("configs", *place.server, "--alter", *user("alice"), "--add-config", BOTH)
    place.ours.stop()

    place.apache.start()
    output = place.apache.output_path.read_text()
    assert "could not be decoded" not in output
    described = tools_3.check("configs", *place.server, "--describe", *broker).output
    assert f"{store_password}=null sensitive=true" in described
    assert place.logs_in("alice", "alice-secret", "SCRAM-SHA-512")
    place.apache.stop()
