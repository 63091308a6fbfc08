"""Apache Kafka's own DumpLogSegments reads every file that we write, without a complaint."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.control import ControlType
from tests.storage.produced import NOW_MS, Producer, append, append_marker, marker, new_log, reopen
from tests.support import jars

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

pytestmark = [pytest.mark.java, pytest.mark.slow]

CONFIG = TopicConfig(segment_bytes=14_000)
COMPLAINT = re.compile(
    r"mismatch|corrupt|exception|error|isvalid: false|invalid|isn't|not indexed", re.IGNORECASE
)
JAVA_TIMEOUT_SECONDS = 250


def fill(directory: Path) -> Log:
    """Fill with all codecs, an idempotent producer, a new epoch, both ends of transactions."""
    log = new_log(directory, CONFIG)
    for index in range(200):
        records = [NewRecord(NOW_MS + index * 10, b"key", b"v" * 50) for _ in range(5)]
        data = build_batch(
            records,
            codec=Codec(index % 5),
            producer_id=7,
            producer_epoch=0,
            base_sequence=index * 5,
        )
        append(log, memoryview(data), epoch=3 + index // 100)
    for index in range(20):
        producer = Producer(8, 0, index, is_transactional=True)
        data = build_batch(
            [NewRecord(NOW_MS, None, b"v")],
            producer_id=8,
            producer_epoch=0,
            base_sequence=index,
            is_transactional=True,
        )
        append(log, memoryview(data), epoch=4)
        append_marker(log, marker(producer, ControlType(index % 2), coordinator_epoch=2))
    return log


def dump(directory: Path, suffixes: tuple[str, ...], *options: str) -> str:
    """Output of Apache's tool for all files with one of the suffixes."""
    names = [
        str(path) for path in sorted((directory / "flights-0").iterdir()) if path.suffix in suffixes
    ]
    command = [jars.java_home_tool("java"), "-Xmx256m", "-cp", jars.classpath(jars.KAFKA_3)]
    outcome = subprocess.run(
        [*command, "kafka.tools.DumpLogSegments", *options, "--files", ",".join(names)],
        capture_output=True,
        text=True,
        timeout=JAVA_TIMEOUT_SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize("is_closed", [True, False])
def test_apache_reads_every_record_and_index(tmp_path: Path, is_closed: bool) -> None:
    log = fill(tmp_path)
    if is_closed:
        log.close()

    records = dump(tmp_path, (".log",), "--deep-iteration")
    indexes = dump(tmp_path, (".index", ".timeindex"))

    assert COMPLAINT.findall(records + indexes) == []
    assert [int(offset) for offset in re.findall(r"^\| offset: (\d+)", records, re.MULTILINE)] == (
        list(range(log.log_end_offset))
    )
    assert len(re.findall(r"isvalid: true", records)) == 240
    assert indexes.count("Dumping") == 2 * len(log.segments)


def test_apache_finds_the_indexes_of_a_recovered_log_sane(tmp_path: Path) -> None:
    fill(tmp_path)
    with max((tmp_path / "flights-0").glob("*.log")).open("ab") as file:
        file.write(b"torn")

    log, outcome = reopen(tmp_path, CONFIG)
    log.close()
    verified = dump(tmp_path, (".index", ".timeindex"), "--verify-index-only")
    checked = dump(tmp_path, (".index", ".timeindex"), "--index-sanity-check")

    assert outcome.bytes_cut == 4
    assert COMPLAINT.findall(verified + checked) == []
    assert checked.count("passed sanity check") + checked.count("is empty") == 2 * len(log.segments)


def test_apache_reads_producer_snapshots_and_aborted_transactions(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.close()

    output = dump(tmp_path, (".snapshot", ".txnindex"))

    last = output.split("Dumping")[-1]
    for producer in log.producers.snapshot():
        assert (
            f"producerId: {producer.producer_id} producerEpoch: {producer.epoch} "
            f"coordinatorEpoch: {producer.coordinator_epoch} "
        ) in last
        assert f"lastSequence: {producer.last_sequence} lastOffset: {producer.last_offset}" in last
    for aborted in log.aborted_transactions(0, log.log_end_offset):
        assert (
            f"producerId: {aborted.producer_id} firstOffset: {aborted.first_offset} "
            f"lastOffset: {aborted.last_offset} "
        ) in output
