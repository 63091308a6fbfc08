"""Log directories change hands between Apache Kafka 3.9.1 and our broker, both ways.

Apache's broker runs in ZooKeeper mode, whose `meta.properties` is version 0. One of the two writes,
and is stopped cleanly or killed; the other opens the directory and serves the same. Before ours can
give one to Apache it takes it over with the topics in it, as Apache's ZooKeeper must know them.
Against Apache itself the same broker opens its own directory again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.interop.clients import confluent
from tests.interop.clients.reading import COMMITTED, UNCOMMITTED, ConfluentReader, visible
from tests.interop.clients.record import CODECS, Placed, Record, Sending, numbered_records
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import (
    against_apache,
    create_topic,
    eventually,
    is_served,
    patiently,
)
from tests.support.brokers.apache import ZooKeeperCluster
from tests.support.brokers.broker_process import BrokerProcess
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SEGMENT_BYTES = {"segment.bytes": "16384", "index.interval.bytes": "200"}
COUNT = 200
BATCH = 40
GROUP = "movers"

ACCOUNTS = "accounts"
"""The topic of transactions, two partitions; also the group whose offsets go with them."""

LEFT_OPEN = "left-open"
TRANSACTIONS = 60
LONG_MS = 600_000
FILLING = "x" * 300

Ending = Callable[[BrokerProcess], object]
ENDINGS: dict[str, Ending] = {"stopped": BrokerProcess.stop, "killed": BrokerProcess.kill}
EXCHANGES: dict[tuple[str, str], Sequence[pytest.MarkDecorator]] = {
    ("ours", "killed"): (),
    ("apache", "stopped"): (),
    ("ours", "stopped"): (pytest.mark.slow,),
    ("apache", "killed"): (pytest.mark.slow,),
}
"""The broker that takes the directory over, and how the other one ended."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((taker, ending), id=f"{taker}-after-{ending}", marks=marks)
        for (taker, ending), marks in EXCHANGES.items()
    ],
)
def successor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return a broker that serves what the other make wrote before it was stopped or killed."""
    directory = tmp_path_factory.mktemp("exchange")
    cluster = ZooKeeperCluster(directory / "apache")
    taker, ending = request.param
    pass_on = taken_over if taker == "ours" else given_back
    try:
        cluster.start()
        yield from pass_on(cluster, directory, ENDINGS[ending])
    finally:
        cluster.kill()


def taken_over(cluster: ZooKeeperCluster, directory: Path, end: Ending) -> Iterator[BrokerProcess]:
    """Apache writes; ours serves a copy of the directory."""
    create(cluster.broker.bootstrap)
    fill(cluster.broker.bootstrap)
    end(cluster.broker)
    if against_apache():
        yield started_again(cluster)
        return
    copy = directory / "copy"
    shutil.copytree(cluster.broker.data_directory, copy)
    broker = ours(directory / "ours", data_directory=copy)
    broker.start()
    try:
        yield broker
        assert broker.stop() == 0
    finally:
        broker.kill()


def given_back(cluster: ZooKeeperCluster, directory: Path, end: Ending) -> Iterator[BrokerProcess]:
    """Apache makes the topics, ours writes to its directory, Apache serves it again."""
    create(cluster.broker.bootstrap)
    # Apache makes its topics for offsets and for transactions.
    commit(cluster.broker.bootstrap, "another", 1)
    ConfluentProducer(cluster.broker.bootstrap, "another").close()
    writer = cluster.broker
    if not against_apache():
        cluster.broker.stop()
        writer = ours(directory / "ours", data_directory=cluster.broker.data_directory)
        writer.start()
    try:
        roll_early(writer.bootstrap)
        fill(writer.bootstrap)
        end(writer)
        yield started_again(cluster)
    finally:
        writer.kill()


def started_again(cluster: ZooKeeperCluster) -> BrokerProcess:
    """Apache's broker on its directory, when its old session is over and it leads again."""
    cluster.start_again()
    admin = AdminClient({"bootstrap.servers": cluster.broker.bootstrap})
    eventually(lambda: is_served(admin, "moved", len(CODECS)))
    eventually(lambda: is_served(admin, "continued", 1))
    return cluster.broker


def create(bootstrap: str) -> None:
    """Create the topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_topic(admin, "moved", len(CODECS), SEGMENT_BYTES)
    create_topic(admin, "continued", 1)
    create_topic(admin, ACCOUNTS, 2, SEGMENT_BYTES)


def roll_early(bootstrap: str) -> None:
    """Configure small segments for topics that were taken over, without their configuration."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for topic in ("moved", ACCOUNTS):
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        for name, value in SEGMENT_BYTES.items():
            entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            resource.add_incremental_config(entry)
        admin.incremental_alter_configs([resource])[resource].result(120.0)


def fill(bootstrap: str) -> None:
    """Write records with every codec, in several segments, and commit a group's offset."""
    for partition, codec in enumerate(CODECS):
        sending = Sending(codec=codec, style="callback", is_idempotent=True)
        records = numbered_records(COUNT, partition, size=300)
        for start in range(0, COUNT, BATCH):
            confluent.produce(bootstrap, "moved", records[start : start + BATCH], sending)
    confluent.produce(bootstrap, "continued", numbered_records(10), Sending(style="callback"))
    commit(bootstrap, GROUP, 123)
    transact(bootstrap)


def transact(bootstrap: str) -> None:
    """Commit two of three transactions with their offsets, leave one open, write on behind it."""
    producer = ConfluentProducer(bootstrap, ACCOUNTS)
    with closing(producer), closing(ConfluentReader(bootstrap, ACCOUNTS, ACCOUNTS)) as reader:
        for number in range(TRANSACTIONS):
            producer.begin()
            for partition in range(2):
                producer.send(ACCOUNTS, partition, account(number))
            producer.send_offsets(ACCOUNTS, {0: number, 1: number}, reader)
            producer.flush()
            if is_committed(number):
                producer.commit()
            else:
                producer.abort()
    with closing(ConfluentProducer(bootstrap, LEFT_OPEN, LONG_MS)) as left_open:
        left_open.begin()
        left_open.send(ACCOUNTS, 0, b"open")
        left_open.flush()
        confluent.produce(bootstrap, ACCOUNTS, [Record(0, None, b"behind")], Sending())


def account(number: int) -> bytes:
    return f"{number}-{FILLING}".encode()


def is_committed(number: int) -> bool:
    return number % 3 != 0


def commit(bootstrap: str, group: str, offset: int) -> None:
    """Commit an offset of a group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    wanted = [TopicPartition("moved", 0, offset, "x")]
    patiently(lambda: consumer.commit(offsets=wanted, asynchronous=False))
    consumer.close()


def test_every_record_is_served(successor: BrokerProcess) -> None:
    records = confluent.read(successor.bootstrap, "moved", COUNT * len(CODECS))

    for partition in range(len(CODECS)):
        held = [record for record in records if record.partition == partition]
        assert [record.offset for record in held] == list(range(COUNT))
        wanted = numbered_records(COUNT, partition, size=300)
        assert [record.without_offset() for record in held] == wanted


def test_offsets_by_time_are_found_in_apaches_time_index(successor: BrokerProcess) -> None:
    consumer = Consumer({"bootstrap.servers": successor.bootstrap, "group.id": "any"})
    base = numbered_records(1)[0].timestamp_ms
    asked = [TopicPartition("moved", partition, base + 150) for partition in range(len(CODECS))]
    found = patiently(lambda: consumer.offsets_for_times(asked, 30.0))
    consumer.close()

    assert [one.offset for one in found] == [150] * len(CODECS)


def test_the_committed_offset_of_the_group_is_kept(successor: BrokerProcess) -> None:
    consumer = Consumer({"bootstrap.servers": successor.bootstrap, "group.id": GROUP})
    (found,) = patiently(lambda: consumer.committed([TopicPartition("moved", 0)], 30.0))
    consumer.close()

    assert (found.offset, found.metadata) == (123, "x")


def test_new_records_continue_at_the_log_end_offset(successor: BrokerProcess) -> None:
    sending = Sending(style="callback", is_idempotent=True)
    placed = confluent.produce(successor.bootstrap, "continued", numbered_records(2), sending)

    assert placed == [Placed(0, 10), Placed(0, 11)]
    records = confluent.read(successor.bootstrap, "continued", 12)
    assert [record.offset for record in records] == list(range(12))


def test_transactions_are_served_under_both_isolation_levels(successor: BrokerProcess) -> None:
    every = [account(number) for number in range(TRANSACTIONS)]
    kept = [account(number) for number in range(TRANSACTIONS) if is_committed(number)]

    assert accounts(successor, UNCOMMITTED, 0) == [*every, b"open", b"behind"]
    assert accounts(successor, UNCOMMITTED, 1) == every
    assert accounts(successor, COMMITTED, 0) == kept
    assert accounts(successor, COMMITTED, 1) == kept
    with closing(ConfluentReader(successor.bootstrap, ACCOUNTS, ACCOUNTS)) as reader:
        assert reader.committed() == {0: TRANSACTIONS - 1, 1: TRANSACTIONS - 1}

    with closing(ConfluentProducer(successor.bootstrap, LEFT_OPEN, LONG_MS)) as heir:
        heir.begin()
        heir.send(ACCOUNTS, 1, b"inherited")
        heir.commit()
    eventually(lambda: accounts(successor, COMMITTED, 0) == [*kept, b"behind"])
    eventually(lambda: accounts(successor, COMMITTED, 1) == [*kept, b"inherited"])


def accounts(broker: BrokerProcess, isolation: str, partition: int) -> list[bytes]:
    reader = ConfluentReader(broker.bootstrap, ACCOUNTS, "any", isolation)
    with closing(reader):
        return [value for at, _, value in visible(reader) if at == partition]
