"""The same logs, compacted by Apache Kafka 3.9.1 and by us, hold the same in the same bytes.

Apache's broker writes them without compacting and is stopped. A copy is compacted by our code; then
Apache starts again and compacts its own, and after that opens what we made of the copy.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from config.topic import TopicConfig
from protocol.records.batch import BatchHeader, iterate_headers, parse_header
from protocol.records.compression import Codec
from protocol.records.record import Record, iterate_records
from storage.directory.log_directory import LogDirectory
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import LoadHints, load_log
from storage.log.log_settings import LogPlace, LogSettings
from tests.interop.conftest import create_topic, eventually, is_served
from tests.storage.compaction.compacting import compact
from tests.support.brokers.apache import ZooKeeperCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import Tools

pytestmark = pytest.mark.slow

TOPIC = "compared"
PLAIN, IDEMPOTENT, TRANSACTIONAL = range(3)
PARTITIONS = (PLAIN, IDEMPOTENT, TRANSACTIONAL)
SEGMENT_BYTES = 6000
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(SEGMENT_BYTES),
    "index.interval.bytes": "200",
    "min.cleanable.dirty.ratio": "0.01",
}
OURS = TopicConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=SEGMENT_BYTES,
    index_interval_bytes=200,
    min_cleanable_dirty_ratio=0.01,
)
QUICK = {"log.cleaner.backoff.ms": "100", "log.cleaner.enable": "true"}
SETTLED_SECONDS = 1.0
COMPLAINTS = re.compile(r"mismatch|invalid|corrupt|not valid|out of order", re.IGNORECASE)


class Batch(NamedTuple):
    """A batch as it stands in a log."""

    data: bytes
    has_delete_horizon: bool


@dataclass(frozen=True)
class Compacted:
    """Directories of the topic's partitions after the same cleaning by two makes."""

    ours: Path
    apache: Path
    cluster: ZooKeeperCluster


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compacted]:
    directory = tmp_path_factory.mktemp("compared")
    cluster = ZooKeeperCluster(directory / "apache", {"log.cleaner.enable": "false"})
    try:
        cluster.start()
        fill(cluster.broker.bootstrap)
        cluster.broker.stop()
        shutil.copytree(cluster.broker.data_directory, directory / "ours")
        for partition in PARTITIONS:
            compact_with_ours(directory / "ours", partition)
        start_again(cluster, QUICK)
        eventually(lambda: has_cleaned_all(cluster.broker.data_directory))
        time.sleep(SETTLED_SECONDS)
        cluster.broker.stop()
        shutil.copytree(cluster.broker.data_directory, directory / "cleaned")
        yield Compacted(directory / "ours", directory / "cleaned", cluster)
    finally:
        cluster.kill()


def start_again(cluster: ZooKeeperCluster, properties: dict[str, str]) -> None:
    """Start the broker with other properties, once its old session has ended."""
    path = cluster.broker.directory / "server.properties"
    lines = [line for line in path.read_text().splitlines() if line.split("=")[0] not in properties]
    path.write_text("\n".join([*lines, *(f"{key}={properties[key]}" for key in properties), ""]))
    cluster.start_again()


def has_cleaned_all(data_directory: Path) -> bool:
    path = data_directory / "cleaner-offset-checkpoint"
    text = path.read_text() if path.exists() else ""
    cleaned = re.findall(rf"^{TOPIC} (\d) [1-9]", text, re.MULTILINE)
    return len(cleaned) == len(PARTITIONS)


def fill(bootstrap: str) -> None:
    """Keys that come again, tombstones, all codecs, and transactions with both ends."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_topic(admin, TOPIC, len(PARTITIONS), CONFIG)
    for number, codec in enumerate(["none", "gzip", "snappy", "lz4", "zstd"] * 4):
        with_codec = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        send(with_codec, PLAIN, number)
    idempotent = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(30):
        send(idempotent, IDEMPOTENT, number)
    transactional = [
        Producer({"bootstrap.servers": bootstrap, "transactional.id": f"one-{number}"})
        for number in range(3)
    ]
    for producer in transactional:
        producer.init_transactions()
    for number in range(30):
        producer = transactional[number % 3]
        producer.begin_transaction()
        send(producer, TRANSACTIONAL, number)
        if number % 4 == 1:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    send(Producer({"bootstrap.servers": bootstrap}), TRANSACTIONAL, 100)


def send(producer: Producer, partition: int, number: int) -> None:
    """Send one round of records, now and then with a tombstone."""
    for index in range(12):
        key = f"key-{(number * 5 + index * index) % 90}"
        value = (
            None
            if index == 7 and number % 3 == 0
            else f"value-{number}-{index}-" + "x" * (number * index % 60)
        )
        producer.produce(TOPIC, key=key, value=value, partition=partition)
    assert producer.flush(120) == 0


def compact_with_ours(data_directory: Path, partition: int) -> None:
    directory = LogDirectory(str(data_directory), Disk(LocalFileSystem()))
    hints = LoadHints(was_clean=True, high_watermark=10**9)
    log, outcome = load_log(LogPlace(directory, TOPIC, partition), OURS, LogSettings(), hints)
    assert outcome.notes == []
    done = compact(log, int(time.time() * 1000))  # noqa: TID251
    assert done is not None
    log.close()


def batches_of(data_directory: Path, partition: int) -> list[Batch]:
    paths = sorted((data_directory / f"{TOPIC}-{partition}").glob("*.log"))
    return [
        Batch(data[position : position + header.size_in_bytes], header.has_delete_horizon)
        for data in (path.read_bytes() for path in paths)
        for position, header in iterate_headers(data)
    ]


def records_of(batches: list[Batch]) -> list[Record]:
    return [record for batch in batches for record in iterate_records(batch.data)]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_same_records_survive_as_in_apache(compacted: Compacted, partition: int) -> None:
    ours = records_of(batches_of(compacted.ours, partition))
    apaches = records_of(batches_of(compacted.apache, partition))

    assert ours == apaches
    assert len({record.key for record in ours}) < len(ours) < 300


@pytest.mark.parametrize("partition", PARTITIONS)
def test_compacted_batches_equal_apaches(compacted: Compacted, partition: int) -> None:
    """Except for the time of the cleaning, and the empty batches that mark the end of a segment."""
    ours, apaches = (
        {essence(batch) for batch in batches_of(directory, partition)}
        for directory in (compacted.ours, compacted.apache)
    )

    assert apaches - ours == set()
    assert [data for data in ours - apaches if data[0].record_count] == []
    assert len(apaches) > 4


def essence(batch: Batch) -> tuple[BatchHeader, bytes]:
    """Header and records; of them what is not the codec's, nor the time of the cleaning."""
    header = parse_header(batch.data)
    if header.codec is not Codec.NONE:
        return header._replace(crc=0, batch_length=0, base_timestamp=0), b""
    if not batch.has_delete_horizon:
        return header, batch.data
    return header._replace(crc=0, base_timestamp=0), b""


@pytest.mark.parametrize("partition", PARTITIONS)
def test_dump_log_reads_what_we_compacted(
    compacted: Compacted, tools_3: Tools, partition: int
) -> None:
    directory = compacted.ours / f"{TOPIC}-{partition}"
    files = sorted(
        path
        for path in directory.iterdir()
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    )
    names = ",".join(map(str, files))
    said = tools_3.check("dump-log", "--files", names, "--deep-iteration").output

    assert not COMPLAINTS.search(said.replace("isvalid: true", "")), said
    assert "isvalid: true" in said


def test_apache_serves_what_we_compacted(compacted: Compacted) -> None:
    data_directory = compacted.cluster.broker.data_directory
    wanted = {
        partition: records_of(batches_of(compacted.ours, partition))
        for partition in (PLAIN, IDEMPOTENT)
    }
    for partition in PARTITIONS:
        name = f"{TOPIC}-{partition}"
        shutil.rmtree(data_directory / name)
        shutil.copytree(compacted.ours / name, data_directory / name)

    start_again(compacted.cluster, {"log.cleaner.enable": "false"})

    bootstrap = compacted.cluster.broker.bootstrap
    eventually(
        lambda: is_served(AdminClient({"bootstrap.servers": bootstrap}), TOPIC, len(PARTITIONS))
    )
    for partition, records in wanted.items():
        held = read(bootstrap, partition, len(records))
        assert held == [(record.offset, record.key, record.value) for record in records]


def read(
    bootstrap: str, partition: int, count: int
) -> list[tuple[int, bytes | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any"})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    found: list[tuple[int, bytes | None, bytes | None]] = []
    while len(found) < count:
        for message in consumer.consume(count, 10.0):
            assert message.error() is None, message.error()
            found.append((message.offset() or 0, message.key(), message.value()))
    consumer.close()
    return found
