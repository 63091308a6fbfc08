"""DumpLogSegments of 3.9.1 reads what the broker wrote, without a complaint."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from coordinator.partitioner import partition_for
from tests.interop.clients import confluent, kafka_python
from tests.interop.clients.reading import ConfluentReader
from tests.interop.clients.record import CODECS, Sending, numbered_records
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import NewTopicFunction
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Tools

COMPLAINTS = re.compile(
    r"mismatch|invalid|corrupt|not valid|Found timestamp|out of order", re.IGNORECASE
)
SEGMENT_BYTES = 1048576


def dump(tools: Tools, files: list[Path], *options: str) -> str:
    """Run the tool on `files` and return its output, which must hold no complaint."""
    names = ",".join(str(file) for file in files)
    said = tools.check("dump-log", "--files", names, *options).output
    assert not COMPLAINTS.search(said.replace("isvalid: true", "")), said
    return said


@pytest.mark.parametrize("codec", CODECS)
def test_log_and_indexes_are_read_without_a_complaint(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools, codec: str
) -> None:
    topic = new_topic(**{"index.interval.bytes": "100", "segment.bytes": str(SEGMENT_BYTES)})
    records = numbered_records(300, size=100)
    for start in range(0, 300, 30):
        sending = Sending(codec=codec, style="callback", is_idempotent=True)
        confluent.produce(broker.bootstrap, topic, records[start : start + 30], sending)
    directory = broker.data_directory / f"{topic}-0"
    log, index, time_index = (directory / f"{0:020}.{end}" for end in ("log", "index", "timeindex"))

    read = dump(tools_3, [log], "--deep-iteration", "--print-data-log", "--verify-index-only")
    checked = dump(tools_3, [index], "--index-sanity-check")
    entries = dump(tools_3, [index, time_index])

    assert f"compresscodec: {codec}" in read
    offsets = re.findall(r"\| offset: (\d+) ", read)
    assert [int(offset) for offset in offsets] == list(range(300))
    assert re.findall(r"payload: (\S+)", read) == [(row.value or b"").decode() for row in records]
    assert "passed sanity check" in checked
    assert re.findall(r"offset: (\d+) position: \d+", entries)
    assert re.findall(r"timestamp: (\d+) offset: \d+", entries)


def test_rolled_segments_continue_each_other(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools
) -> None:
    topic = new_topic(**{"segment.bytes": str(SEGMENT_BYTES)})
    records = numbered_records(60, size=60_000)
    kafka_python.produce(broker.bootstrap, topic, records, Sending(style="callback"))
    logs = sorted((broker.data_directory / f"{topic}-0").glob("*.log"))
    assert len(logs) >= 3

    read = [dump(tools_3, [log], "--deep-iteration") for log in logs]

    offsets = [[int(found) for found in re.findall(r"\| offset: (\d+) ", one)] for one in read]
    assert [number for one in offsets for number in one] == list(range(60))
    assert [one[0] for one in offsets] == [int(log.stem) for log in logs]
    for log in logs[:-1]:
        assert dump(tools_3, [log.with_suffix(".index"), log.with_suffix(".timeindex")])
        assert log.stat().st_size <= SEGMENT_BYTES


def test_producer_snapshot_is_read(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools
) -> None:
    topic = new_topic(**{"segment.bytes": str(SEGMENT_BYTES)})
    sending = Sending(style="callback", is_idempotent=True)
    confluent.produce(broker.bootstrap, topic, numbered_records(40, size=60_000), sending)
    snapshots = sorted((broker.data_directory / f"{topic}-0").glob("*.snapshot"))
    assert snapshots, "rolling a segment takes a snapshot"

    said = tools_3.check("dump-log", "--files", str(snapshots[-1])).output

    (state,) = re.findall(r"producerId: (\d+) producerEpoch: (\d+)", said)
    assert state[1] == "0"
    (last,) = re.findall(r"lastSequence: (\d+)", said)
    assert int(last) == int(snapshots[-1].stem) - 1


def test_committed_offsets_are_decoded(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools
) -> None:
    topic, group = new_topic(), "dump-group"
    sending = Sending(style="callback")
    confluent.produce(broker.bootstrap, topic, numbered_records(6), sending)
    tools_3.check(
        *("console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", topic),
        *("--group", group, "--from-beginning", "--max-messages", "6", "--timeout-ms", "20000"),
    )
    logs = sorted(broker.data_directory.glob(f"__consumer_offsets-*/{0:020}.log"))
    assert len(logs) == 50

    said = dump(tools_3, logs, "--offsets-decoder")

    keys = [line for line in said.splitlines() if f'"group":"{group}"' in line]
    commits = [line for line in keys if f'"topic":"{topic}"' in line]
    assert re.search(r'"partition":0.*"offset":6', commits[-1])
    assert any('"protocolType":"consumer"' in line for line in keys)


def test_transactions_their_index_and_snapshot_are_read(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools
) -> None:
    topic = new_topic(**{"segment.bytes": str(SEGMENT_BYTES)})
    value = b"x" * 100_000
    with closing(ConfluentProducer(broker.bootstrap, f"{topic}-producer")) as producer:
        for number in range(12):
            producer.begin()
            producer.send(topic, 0, value)
            producer.flush()
            if number % 3 == 0:
                producer.abort()
            else:
                producer.commit()
        producer.begin()
        producer.send(topic, 0, value)
        producer.flush()
        directory = broker.data_directory / f"{topic}-0"
        logs = sorted(directory.glob("*.log"))
        assert len(logs) == 2

        read = dump(tools_3, logs, "--deep-iteration", "--print-data-log")
        aborted = dump(tools_3, sorted(directory.glob("*.txnindex")))
        (snapshot,) = directory.glob(f"{logs[1].stem}.snapshot")
        state = dump(tools_3, [snapshot])
        producer.abort()

    assert len(re.findall(r"isTransactional: true isControl: false", read)) == 13
    markers = re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: 0", read)
    assert markers == ["ABORT" if number % 3 == 0 else "COMMIT" for number in range(12)]
    # The record of the n-th transaction is at 2n, its marker behind it.
    entries = re.findall(r"firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", aborted)
    starts = range(0, 24, 6)
    assert [tuple(map(int, entry)) for entry in entries] == [(n, n + 1, n + 2) for n in starts]
    last = int(logs[1].stem) - 2
    assert f"lastOffset: {last} " in state
    assert "coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty" in state


def test_committed_offsets_of_transactions_are_decoded(
    broker: BrokerProcess, new_topic: NewTopicFunction, tools_3: Tools
) -> None:
    topic, group = new_topic(), "transactional-dump-group"
    with (
        closing(ConfluentProducer(broker.bootstrap, f"{topic}-producer")) as producer,
        closing(ConfluentReader(broker.bootstrap, topic, group)) as reader,
    ):
        for offset in (3, 4, 5):
            producer.begin()
            producer.send_offsets(topic, {0: offset}, reader)
            if offset == 4:
                producer.abort()
            else:
                producer.commit()
        eventually(lambda: reader.committed() == {0: 5})
    name = f"__consumer_offsets-{partition_for(group, 50)}"
    log = broker.data_directory / name / f"{0:020}.log"

    said = dump(tools_3, [log], "--offsets-decoder")

    commits = [line for line in said.splitlines() if f'"topic":"{topic}"' in line]
    assert [int(re.findall(r'"offset":(\d+)', line)[0]) for line in commits] == [3, 4, 5]
    # Other tests' groups may have come to the same partition before.
    since = said.partition(commits[0])[2]
    assert len(re.findall(r"endTxnMarker: ABORT", since)) == 1
    assert len(re.findall(r"endTxnMarker: COMMIT", since)) >= 2
