"""Structured streaming writes and reads by every mechanism, with nothing but options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import jars
from tests.support.brokers.broker_process import write_properties
from tests.support.processes.waiting import wait_until
from tests.support.security.access import WAYS_IN, Access
from tests.support.security.listeners import SECURITY
from tests.support.security.realm import Realm
from tests.support.security.secured_brokers import OURS, secured_broker
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.security.secured_brokers import SecuredBroker

COUNT = 1000
ANSWER_SECONDS = 60.0
TOKENS = (Access("SASL_PLAINTEXT", "OAUTHBEARER"), Access("SASL_SSL", "OAUTHBEARER"))
pytestmark = [pytest.mark.slow, pytest.mark.java]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Realm:
    """Return users and certificates."""
    return Realm(tmp_path_factory.mktemp("realm"))


@pytest.fixture(scope="module")
def secured(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Return a broker with a listener for each protocol."""
    keys = {"delegation.token.secret.key": "of the cluster"}
    broker = secured_broker(OURS, tmp_path_factory.mktemp("secured"), realm, keys)
    broker.start()
    yield broker
    broker.process.kill()


def write_and_read(
    spark: SparkSession, server: str, topic: str, keys: dict[str, str], directory: Path
) -> None:
    """Stream numbers into a topic, and all that is in it into files."""
    options = {"kafka.bootstrap.servers": server}
    options |= {f"kafka.{name}": value for name, value in keys.items()}
    source = directory / "numbers"
    spark.range(COUNT).selectExpr("CAST(id AS STRING) AS value").write.text(str(source))
    sink = (
        spark.readStream.text(str(source))
        .writeStream.format("kafka")
        .options(**options, topic=topic, checkpointLocation=str(directory / "written"))
        .trigger(availableNow=True)
        .start()
    )
    sink.awaitTermination()
    read = (
        spark.readStream.format("kafka")
        .options(**options, subscribe=topic, startingOffsets="earliest")
        .load()
        .selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .options(path=str(directory / "copy"), checkpointLocation=str(directory / "read"))
        .trigger(availableNow=True)
        .start()
    )
    read.awaitTermination()
    found = spark.read.parquet(str(directory / "copy")).collect()
    assert sorted(int(row.value) for row in found) == list(range(COUNT))


@pytest.mark.parametrize("access", WAYS_IN + TOKENS, ids=str)
def test_a_stream_comes_in_by_each_way(
    spark: SparkSession,
    secured: SecuredBroker,
    new_name: Callable[[str], str],
    tmp_path: Path,
    access: Access,
) -> None:
    keys = access.java(secured.realm)
    write_and_read(spark, secured.bootstrap(access), new_name(str(access)), keys, tmp_path)


def test_a_stream_comes_in_with_a_delegation_token(
    spark: SparkSession, secured: SecuredBroker, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    access = Access("SASL_SSL", "SCRAM-SHA-256")
    owner = write_properties(tmp_path / "alice", access.java(secured.realm))
    at = ("--bootstrap-server", secured.bootstrap(access), "--command-config", str(owner))
    tools = Tools(jars.KAFKA_4)
    try:
        made = tools.check("delegation-tokens", *at, "--create", "--max-life-time-period", "-1")
        token_id, hmac = made.lines[-1].split()[:2]
        describe = ("--describe", "--owner-principal", f"User:{access.user}")
        assert wait_until(
            lambda: hmac in tools.check("delegation-tokens", *at, *describe).output, ANSWER_SECONDS
        )
    finally:
        tools.close()
    login = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    keys = access.java(secured.realm)
    keys["sasl.jaas.config"] = f"{SECURITY}.scram.ScramLoginModule required {login};"
    write_and_read(spark, secured.bootstrap(access), new_name("token"), keys, tmp_path)


def test_a_stream_with_a_wrong_password_ends_with_the_reason(
    spark: SparkSession, secured: SecuredBroker, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    access = Access("SASL_SSL", "PLAIN", password="wrong")
    keys = access.java(secured.realm)
    with pytest.raises(StreamingQueryException, match="Invalid username or password"):
        write_and_read(spark, secured.bootstrap(access), "refused", keys, tmp_path)
