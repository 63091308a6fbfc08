"""kafka-transactions, and what the other tools do with transactions and compacted topics."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.builder import NewRecord, build_batch
from tests.interop.clients import confluent
from tests.interop.clients.reading import UNCOMMITTED, ConfluentReader, visible
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records
from tests.interop.clients.transactional import LONGEST_TRANSACTION_MS, ConfluentProducer
from tests.interop.conftest import SHORT_SESSIONS, create_topic, eventually
from tests.support import jars
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker, NewName, NewTopicFunction
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Outcome, Tools

PRODUCE_VERSION = 9
NOBODYS_ID = 9_000_000
"""A producer id that no coordinator has given out."""


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return ("--bootstrap-server", bootstrap)


@pytest.fixture
def open_transaction(
    bootstrap: str, new_topic: NewTopicFunction, new_name: NewName
) -> Iterator[tuple[str, str, ConfluentProducer]]:
    """Return topic and transactional id of a transaction with one record, and its producer."""
    topic, name = new_topic(), new_name("open")
    with closing(ConfluentProducer(bootstrap, name)) as producer:
        producer.begin()
        producer.send(topic, 0, b"open")
        producer.flush()
        yield topic, name, producer


def table(outcome: Outcome) -> list[dict[str, str]]:
    """Return the rows of a printed table, by heading."""
    headings, *rows = [[cell.strip() for cell in line.split("\t")] for line in outcome.lines]
    return [dict(zip(headings, row, strict=False)) for row in rows]


def ends(bootstrap: str, topic: str) -> tuple[int, int]:
    """Return where readers of committed records and of all records stop."""
    found = []
    for isolation in ("read_committed", UNCOMMITTED):
        with closing(ConfluentReader(bootstrap, topic, "any", isolation)) as reader:
            found.append(reader.ends()[0])
    return found[0], found[1]


def test_transaction_is_listed_and_described(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    open_transaction: tuple[str, str, ConfluentProducer],
) -> None:
    topic, name, producer = open_transaction

    def state() -> dict[str, str]:
        (row,) = table(tools.check("transactions", *server, "describe", "--transactional-id", name))
        listed = table(tools.check("transactions", *server, "list"))
        (same,) = [one for one in listed if one["TransactionalId"] == name]
        assert (same["ProducerId"], same["Coordinator"]) == (row["ProducerId"], "0")
        return row

    on_partition = ("describe-producers", "--topic", topic, "--partition", "0")
    (writing,) = table(tools.check("transactions", *server, *on_partition))
    row = state()
    assert (row["TransactionState"], row["TopicPartitions"]) == ("Ongoing", f"{topic}-0")
    assert (row["CoordinatorId"], row["TransactionTimeoutMs"]) == ("0", str(LONGEST_TRANSACTION_MS))
    assert (writing["ProducerId"], writing["LastSequence"]) == (row["ProducerId"], "0")
    assert writing["ProducerEpoch"] == row["ProducerEpoch"]
    assert writing["CurrentTransactionStartOffset"] == "0"

    producer.commit()
    eventually(lambda: state()["TransactionState"] == "CompleteCommit")
    (done,) = table(tools.check("transactions", *server, *on_partition))
    assert state()["TopicPartitions"] == ""
    assert done["CurrentTransactionStartOffset"] == "None"
    assert ends(bootstrap, topic) == (2, 2)


def test_open_transaction_is_aborted_by_its_start(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    open_transaction: tuple[str, str, ConfluentProducer],
) -> None:
    topic, _, _ = open_transaction
    abort = ("abort", "--topic", topic, "--partition", "0", "--start-offset")

    elsewhere = tools.run("transactions", *server, *abort, "1")
    assert elsewhere.exit_code == 1
    assert "Could not find any open transactions starting at offset 1" in elsewhere.errors
    assert ends(bootstrap, topic) == (0, 1)

    tools.check("transactions", *server, *abort, "0")
    assert ends(bootstrap, topic) == (2, 2)


def test_unknown_transactional_id_is_not_described(tools: Tools, server: tuple[str, str]) -> None:
    said = tools.run("transactions", *server, "describe", "--transactional-id", "nobody")

    assert said.exit_code == 1
    assert "failed because the ID could not be found" in said.errors


def test_transaction_is_terminated_by_its_id(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    open_transaction: tuple[str, str, ConfluentProducer],
) -> None:
    topic, name, producer = open_transaction
    terminate = ("forceTerminateTransaction", "--transactionalId", name)

    said = tools.run("transactions", *server, *terminate)

    if tools.version == jars.KAFKA_3:
        assert "invalid choice" in " ".join(said.errors.split())
        return
    assert said.exit_code == 0
    eventually(lambda: ends(bootstrap, topic) == (2, 2))
    with pytest.raises(Exception) as refused:  # noqa: PT011
        producer.commit()
    assert producer.is_fenced(refused.value)


@pytest.fixture(scope="module")
def unguarded(
    new_broker: NewBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return a broker that accepts records of unknown transactions."""
    guard = {"transaction.partition.verification.enable": "false"}
    process = new_broker(tmp_path_factory.mktemp("unguarded"), SHORT_SESSIONS | guard)
    process.start()
    ConfluentProducer(process.bootstrap, "someone").close()
    yield process
    process.kill()


def test_hanging_transaction_is_found_and_aborted(
    tools: Tools, unguarded: BrokerProcess, new_name: NewName
) -> None:
    topic, bootstrap = new_name("hanging"), unguarded.bootstrap
    create_topic(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}), topic, 1)
    leave_hanging(unguarded, topic)
    server = ("--bootstrap-server", bootstrap)
    assert ends(bootstrap, topic) == (0, 1)

    def hanging() -> list[dict[str, str]]:
        found = table(tools.check("transactions", *server, "find-hanging", "--broker-id", "0"))
        return [row for row in found if row["Topic"] == topic]

    (row,) = hanging()
    assert (row["Partition"], row["StartOffset"]) == ("0", "0")
    assert (row["ProducerId"], row["ProducerEpoch"]) == (str(NOBODYS_ID), "0")
    assert int(row["Duration(min)"]) >= 59
    start = ("--topic", topic, "--partition", "0", "--start-offset", "0")
    tools.check("transactions", *server, "abort", *start)
    assert hanging() == []
    assert ends(bootstrap, topic) == (2, 2)


def leave_hanging(broker: BrokerProcess, topic: str) -> None:
    """Write a record of an hour ago in a transaction whose coordinator knows nothing of it."""
    batch = build_batch(
        [NewRecord(BASE_TIMESTAMP_MS, None, b"hanging")],
        producer_id=NOBODYS_ID,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    partition = ProduceRequest.TopicData.PartitionData(index=0, records=batch)
    request = ProduceRequest(
        transactional_id="hanging",
        acks=-1,
        timeout_ms=5000,
        topic_data=[ProduceRequest.TopicData(name=topic, partition_data=[partition])],
    )
    header = request_header(0, PRODUCE_VERSION) + b"\0"
    with RawConnection.open(broker.port) as connection:
        answer = connection.ask(header + request.encode(PRODUCE_VERSION))
    (told,) = ProduceResponse.decode(PRODUCE_VERSION, answer[5:]).responses
    assert [one.error_code for one in told.partition_responses] == [0]


def test_performance_producer_commits_what_it_sends(
    tools: Tools, bootstrap: str, new_topic: NewTopicFunction, new_name: NewName
) -> None:
    topic, name = new_topic(), new_name("performance")

    said = tools.check(
        *("producer-perf-test", "--topic", topic, "--num-records", "400", "--throughput", "1000"),
        *("--record-size", "100", "--transactional-id", name, "--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={bootstrap}"),
    )

    assert re.search(r"^400 records sent", said.output, re.MULTILINE)
    eventually(lambda: len(set(ends(bootstrap, topic))) == 1)
    with closing(ConfluentReader(bootstrap, topic, "any")) as reader:
        assert len(visible(reader)) == 400
        assert reader.ends()[0] > 402, "there is more than one commit marker"


def test_console_consumer_reads_what_is_committed(
    tools: Tools,
    server: tuple[str, str],
    open_transaction: tuple[str, str, ConfluentProducer],
) -> None:
    topic, _, producer = open_transaction
    producer.abort()
    producer.begin()
    producer.send(topic, 0, b"committed")
    producer.commit()

    read = tools.check(
        *("console-consumer", *server, "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", "1", "--timeout-ms", "20000"),
    )

    assert read.lines[-1] == "committed"


def test_records_of_compacted_topics_cannot_be_deleted(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    tmp_path: Path,
) -> None:
    topic = new_topic()
    confluent.produce(bootstrap, topic, numbered_records(5), Sending())
    file = tmp_path / "delete.json"
    place = {"topic": topic, "partition": 0, "offset": 3}
    file.write_text(json.dumps({"partitions": [place], "version": 1}))
    entity = (*server, "--entity-type", "topics", "--entity-name", topic)

    def policy(value: str) -> Callable[[], bool]:
        tools.check("configs", "--alter", *entity, "--add-config", f"cleanup.policy=[{value}]")
        shown = f"cleanup.policy={value}"
        return lambda: shown in tools.check("configs", "--describe", *entity).output

    eventually(policy("compact"))
    refused = tools.run("delete-records", *server, "--offset-json-file", str(file))
    eventually(policy("compact,delete"))
    allowed = tools.check("delete-records", *server, "--offset-json-file", str(file))

    assert "PolicyViolationException" in refused.output + refused.errors
    assert f"partition: {topic}-0\tlow_watermark: 3" in allowed.output
