"""Golden scripts of transactional data over sockets; with AGAINST=apache against Apache.

What is answered, and what then lies on the disk: batches, transaction indexes, producer snapshots.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from storage.producer.producer_snapshot import decode
from storage.segment.aborted_index import ENTRY
from tests.broker.coordinators.golden.data_script import DataScript
from tests.interop.transactions.test_transaction_golden import ConnectedProducer

if TYPE_CHECKING:
    from tests.interop.conftest import NewBroker

GOLDEN = Path(__file__).parents[2] / "broker" / "coordinators" / "golden" / "data"
SCRIPTS = sorted(GOLDEN.glob("*.txt"))
FILES = GOLDEN / "files.dump"
"""Files of the scripts' topics, as Apache Kafka 4 leaves them."""
TOPICS = ("marks", "reads", "verify")
MADE_UP_IDS = range(1000, 2000)
"""Producer ids that the scripts choose; the others are the broker's, and left out."""


def test_answers_to_golden_scripts_and_files_left_behind(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    process = new_broker(tmp_path, {})
    process.start()
    peer = ConnectedProducer(process.port)
    try:
        asyncio.run(replay_all(peer))
    finally:
        peer.close()
        process.stop()
    assert dumped(process.data_directory) == FILES.read_text()


async def replay_all(peer: ConnectedProducer) -> None:
    topic_ids = await peer.prepare()
    differences = {}
    for path in SCRIPTS:
        text = path.read_text()
        replayed = await DataScript(peer, topic_ids).replay(text)
        if replayed != text:
            differences[path.name] = replayed
    if differences:
        pytest.fail("\n".join(f"{name}:\n{text}" for name, text in differences.items()))


def dumped(directory: Path) -> str:
    """The files of the scripts' topics as text, without times."""
    said = []
    for topic in TOPICS:
        for path in sorted(directory.glob(f"{topic}-*/0*")):
            show = {".log": log, ".txnindex": aborted, ".snapshot": producers}.get(path.suffix)
            if show is not None:
                said.append(f"{path.parent.name}/{path.name}")
                said += [f"  {line}" for line in show(path.read_bytes())]
    return "\n".join(said) + "\n"


def log(data: bytes) -> list[str]:
    return [
        f"{header.base_offset}-{header.last_offset} attributes={header.attributes} "
        f"producer={named(header.producer_id)}/{header.producer_epoch} "
        f"sequence={header.base_sequence} records="
        + ", ".join(
            f"{(each.key or b'').hex()}:{(each.value or b'').hex()}"
            for each in iterate_records(data[position : position + header.size_in_bytes])
        )
        for position, header in iterate_headers(data)
    ]


def aborted(data: bytes) -> list[str]:
    return [
        f"version={version} producer={named(producer_id)} first={first} last={last} stable={stable}"
        for version, producer_id, first, last, stable in ENTRY.iter_unpack(data)
    ]


def producers(data: bytes) -> list[str]:
    return sorted(
        f"producer={named(entry.producer_id)}/{entry.epoch} sequence={entry.last_sequence} "
        f"offset={entry.last_offset} delta={entry.offset_delta} "
        f"coordinator={entry.coordinator_epoch} transaction={entry.transaction_first_offset}"
        for entry in decode(data)
    )


def named(producer_id: int) -> str:
    return str(producer_id) if producer_id in MADE_UP_IDS else "P"
