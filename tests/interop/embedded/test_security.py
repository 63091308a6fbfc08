"""Embedded brokers whose clients have to show who they are."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from confluent_kafka import KafkaError, Producer

from broker.testing import EmbeddedBroker, EmbeddedCluster, ErrorCode, Produce

PROTOCOLS = ("ssl", "sasl_plaintext", "sasl_ssl")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_clients_connect_with_the_configs_of_the_broker(protocol: str) -> None:
    from kafka import KafkaProducer

    with EmbeddedBroker(security=protocol) as broker:  # type: ignore[arg-type]
        broker.create_topic("orders")
        producer = Producer({**broker.client_config, "log_level": 0})
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        other = KafkaProducer(**broker.kafka_python_config)
        other.send("orders", b"two").get(20)
        other.close()

        assert [record.value for record in broker.records("orders")] == [b"one", b"two"]
        user = "User:test" if protocol.startswith("sasl") else "User:ANONYMOUS"
        produced = [one for one in broker.requests if isinstance(one.message, Produce)]
        assert {one.principal for one in produced} == {user}


def test_a_client_with_a_wrong_password_is_refused() -> None:
    with EmbeddedBroker(security="sasl_plaintext") as broker:
        broker.create_topic("orders")
        wrong = {**broker.client_config, "sasl.password": "wrong", "log_level": 0}
        producer = Producer({**wrong, "message.timeout.ms": 1_000})
        producer.produce("orders", b"one")
        producer.flush(20)
        assert broker.records("orders") == []
        assert broker.requests.of(Produce) == []


def test_a_cluster_with_acls_serves_its_user() -> None:
    config = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:test",
    }
    with EmbeddedCluster(config=config, security="sasl_ssl") as cluster:
        cluster.create_topic("orders")
        producer = Producer({**cluster.client_config, "log_level": 0})
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        assert [record.value for record in cluster.records("orders")] == [b"one"]


def test_certificates_are_those_that_strict_verifiers_take() -> None:
    async def test() -> None:
        async with EmbeddedBroker(security="ssl") as broker:
            context = ssl.create_default_context(cafile=broker.client_config["ssl.ca.location"])
            context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
            host, port = broker.bootstrap_servers.split(":")
            _, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.close()
            await writer.wait_closed()

    asyncio.run(test())


def test_acls_tell_users_apart_on_one_broker() -> None:
    config = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    with EmbeddedBroker(config, security="sasl_plaintext") as broker:
        broker.create_topic("orders")
        errors: list[KafkaError | None] = []
        producer = Producer({**broker.client_config, "log_level": 0, "message.timeout.ms": 5_000})
        producer.produce("orders", b"one", on_delivery=lambda error, _: errors.append(error))
        producer.flush(20)
        assert errors[0] is not None
        assert errors[0].code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert broker.records("orders") == []
