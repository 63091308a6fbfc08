"""Ours and Apache Kafka 3.9.1 in one cluster: OAUTHBEARER between them, tokens of each at both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.interop.security.test_delegation_tokens import (
    MECHANISMS,
    SECURITY,
    Client,
    with_sasl,
)
from tests.support.brokers.apache import apache_3
from tests.support.brokers.broker_process import BrokerProcess, free_port
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import Tools

pytestmark = pytest.mark.slow

WAIT_SECONDS = 120.0
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required"
SASL_PORTS = [free_port(), free_port()]


def keys(broker_id: int, port: int, zookeeper_port: int) -> dict[str, str]:
    """The same for both makes."""
    prefix = "listener.name.sasl_plaintext"
    return {
        **with_sasl(port, SASL_PORTS[broker_id]),
        "broker.id": str(broker_id),
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "zookeeper.session.timeout.ms": "20000",  # Apache's dies if it expires at the start
        "default.replication.factor": "2",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", "OAUTHBEARER", *MECHANISMS)),
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{prefix}.oauthbearer.sasl.jaas.config": (
            f'{OAUTH} unsecuredLoginStringClaim_sub="broker";'
        ),
    }


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[BrokerProcess]]:
    """Return broker 0, of ours, and broker 1, Apache's."""
    directory = tmp_path_factory.mktemp("mixed")
    zookeeper = ZooKeeperServer(directory / "zookeeper")
    zookeeper.start()
    ports = [free_port(), free_port()]
    brokers = [
        ours(directory / "0", keys(0, ports[0], zookeeper.port), port=ports[0]),
        apache_3(directory / "1", zookeeper.port, keys(1, ports[1], zookeeper.port), port=ports[1]),
    ]
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
        zookeeper.kill()


def test_replicas_are_in_sync_over_oauthbearer(mixed: list[BrokerProcess]) -> None:
    admin = AdminClient({"bootstrap.servers": mixed[0].bootstrap})
    assert wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 2, WAIT_SECONDS)
    topic = NewTopic("over-oauthbearer", 4, 2)
    admin.create_topics([topic])["over-oauthbearer"].result(WAIT_SECONDS)

    def are_in_sync() -> bool:
        found = admin.list_topics("over-oauthbearer", timeout=10).topics["over-oauthbearer"]
        partitions = found.partitions.values()
        return len(partitions) == 4 and all(set(one.isrs) == {0, 1} for one in partitions)

    def lead_some_each() -> bool:  # the broker that is asked may not have heard of the topic yet
        found = admin.list_topics("over-oauthbearer", timeout=10).topics["over-oauthbearer"]
        return {partition.leader for partition in found.partitions.values()} == {0, 1}

    assert wait_until(are_in_sync, WAIT_SECONDS)
    assert wait_until(lead_some_each, WAIT_SECONDS)


@pytest.mark.parametrize("maker", [0, 1])
def test_token_of_one_make_is_good_at_the_other(
    mixed: list[BrokerProcess], tools: Tools, tmp_path: Path, maker: int
) -> None:
    here = Client(tools, SASL_PORTS[maker], tmp_path)
    there = Client(tools, SASL_PORTS[1 - maker], tmp_path)
    token = here.create("alice", "--renewer-principal", "User:bob")
    assert wait_until(lambda: there.shows("alice", token), WAIT_SECONDS)
    for mechanism in MECHANISMS:
        assert there.with_token(token, mechanism, "topics", "--list").exit_code == 0
    renewed = there.as_user(
        *("bob", "delegation-tokens", "--renew", "--renew-time-period", "-1"),
        *("--hmac", token.hmac),
    )
    assert renewed.exit_code == 0, renewed
    expired = there.as_user(
        *("alice", "delegation-tokens", "--expire", "--expiry-time-period", "-1"),
        *("--hmac", token.hmac),
    )
    assert expired.exit_code == 0, expired
    assert wait_until(lambda: not here.shows("alice", token), WAIT_SECONDS)
