"""Compaction in a running broker: what consumers see of it, and what it does on a bad day."""

from __future__ import annotations

import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support.brokers.ours import ours
from tests.support.processes.children import children_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.brokers.broker_process import BrokerProcess

    NewCleaningBroker = Callable[..., BrokerProcess]

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="looks at our log lines and processes"),
    pytest.mark.slow,
]

SMALL_INDEXES = {"log.index.size.max.bytes": "100000", "log.segment.delete.delay.ms": "100"}
EAGER = {
    **SMALL_INDEXES,
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
}
IDLE = {**SMALL_INDEXES, "log.cleaner.enable": "false"}
SLOW = {**EAGER, "log.cleaner.io.max.bytes.per.second": "20000"}
SEGMENT_BYTES = 16_384
KEYS = 50
COUNT = 3000


@pytest.fixture
def new_cleaner(tmp_path: Path) -> Iterator[NewCleaningBroker]:
    """Start brokers, one after the other, on one directory."""
    brokers: list[BrokerProcess] = []

    def start(properties: dict[str, str], *prefix: str) -> BrokerProcess:
        number = len(brokers)
        broker = ours(tmp_path / str(number), properties, data_directory=tmp_path / "data")
        broker.command = [*prefix, *broker.command]
        brokers.append(broker)
        broker.start()
        return broker

    yield start
    for broker in brokers:
        broker.kill()


def fill(broker: BrokerProcess, topic: str, keys: int = KEYS, segment: int = SEGMENT_BYTES) -> None:
    """Make a compacted topic and give it many records, in batches smaller than a segment."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {"cleanup.policy": "compact", "segment.bytes": str(segment)}
    create_topic(admin, topic, 1, config)
    more(broker, topic, keys)


def more(broker: BrokerProcess, topic: str, keys: int = KEYS) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "batch.size": 4000, "linger.ms": 50}
    )
    for number in range(COUNT):
        value = f"value-{number}-" + "x" * 80
        producer.produce(topic, key=f"key-{number % keys}", value=value, partition=0)
    assert producer.flush(120) == 0


def read(broker: BrokerProcess, topic: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """Key and value of every record, by offset, from the beginning to the end."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "any", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = {}
    while (message := consumer.poll(120)) is not None:
        error = message.error()
        if error is None:
            found[message.offset() or 0] = message.key(), message.value()
        elif error.code() == KafkaError._PARTITION_EOF:
            break
    consumer.close()
    return found


def expected_last_values(keys: int = KEYS) -> dict[bytes, bytes]:
    return {
        b"key-%d" % (number % keys): b"value-%d-" % number + b"x" * 80 for number in range(COUNT)
    }


def directory_of(tmp_path: Path, topic: str) -> Path:
    return tmp_path / "data" / f"{topic}-0"


def log_bytes(directory: Path) -> int:
    size = 0
    for path in directory.glob("*.log"):
        with suppress(FileNotFoundError):  # it was just replaced
            size += path.stat().st_size
    return size


def output(broker: BrokerProcess) -> str:
    return broker.output_path.read_text(encoding="utf-8")


def children(broker: BrokerProcess) -> list[int]:
    return children_of(broker.pid)


def is_gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return True


def test_compaction_keeps_the_last_value_of_each_key_at_its_offset(
    tmp_path: Path, new_cleaner: NewCleaningBroker
) -> None:
    broker = new_cleaner(EAGER)
    fill(broker, "kept")
    eventually(lambda: log_bytes(directory_of(tmp_path, "kept")) < 2 * SEGMENT_BYTES)

    found = read(broker, "kept")

    assert dict(found.values()) == expected_last_values()
    assert all(
        value.startswith(b"value-%d-" % offset) for offset, (_, value) in found.items() if value
    )
    eventually(lambda: "compacted kept-0 up to offset" in output(broker))
    eventually(lambda: children(broker) == [])
    assert broker.stop() == 0
    checkpoint = (tmp_path / "data" / "cleaner-offset-checkpoint").read_text()
    assert re.fullmatch(r"0\n1\nkept 0 \d+\n", checkpoint)

    again = new_cleaner(EAGER)
    still = read(again, "kept")
    assert still.items() <= found.items(), "nothing returns, nothing changes"
    assert dict(still.values()) == expected_last_values()
    assert "compacted" not in output(again)


def test_a_damaged_log_is_logged_once_and_the_others_are_compacted(
    tmp_path: Path, new_cleaner: NewCleaningBroker
) -> None:
    idle = new_cleaner(IDLE)
    for topic in ("damaged", "sound"):
        fill(idle, topic)
    assert idle.stop() == 0
    first = directory_of(tmp_path, "damaged") / f"{0:020d}.log"
    data = bytearray(first.read_bytes())
    data[200] ^= 0xFF
    first.write_bytes(data)

    broker = new_cleaner(EAGER)

    eventually(lambda: log_bytes(directory_of(tmp_path, "sound")) < 2 * SEGMENT_BYTES)
    eventually(lambda: "compaction of damaged-0 disabled" in output(broker))
    more(broker, "sound")
    eventually(lambda: output(broker).count("compacted sound-0") == 2)
    assert output(broker).count("compaction of damaged-0 disabled") == 1
    assert "the checksum of the batch at offset 0 is wrong" in output(broker)
    assert first.read_bytes() == data


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_a_full_disk_is_logged_and_leaves_the_segments_unchanged(
    tmp_path: Path, new_cleaner: NewCleaningBroker
) -> None:
    """A limit on the size of each file stands in for the full disk."""
    idle = new_cleaner(IDLE)
    fill(idle, "large", keys=COUNT, segment=200_000)
    assert idle.stop() == 0
    directory = directory_of(tmp_path, "large")
    first = directory / f"{0:020d}.log"
    before = first.read_bytes()

    broker = new_cleaner(EAGER, "prlimit", "--fsize=150000")

    eventually(lambda: "compaction of large-0 failed, retrying in 60 s" in output(broker))
    assert "File too large; its segments stay as they are" in output(broker)
    assert first.read_bytes() == before
    eventually(lambda: not list(directory.glob("*.cleaned")))
    assert len(read(broker, "large")) == COUNT


def test_a_topic_deleted_while_it_is_compacted_is_gone_and_the_others_go_on(
    tmp_path: Path, new_cleaner: NewCleaningBroker
) -> None:
    idle = new_cleaner(IDLE)
    fill(idle, "doomed")
    assert idle.stop() == 0
    broker = new_cleaner(SLOW)
    eventually(lambda: children(broker) != [])

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["doomed"])["doomed"].result(120)

    eventually(lambda: "compaction of doomed-0 abandoned" in output(broker))
    eventually(lambda: not list((tmp_path / "data").glob("doomed-0*")))
    eventually(lambda: children(broker) == [])
    assert "Traceback" not in output(broker)


def test_a_killed_cleaner_is_logged_and_the_broker_keeps_serving(
    new_cleaner: NewCleaningBroker,
) -> None:
    broker = new_cleaner(SLOW)
    fill(broker, "kept")
    eventually(lambda: children(broker) != [])

    for pid in children(broker):
        os.kill(pid, signal.SIGKILL)

    eventually(lambda: "its process ended with code -9" in output(broker))
    values = dict(read(broker, "kept").values())
    assert values == expected_last_values()


def test_a_broker_killed_while_it_compacts_takes_its_cleaner_along_and_loses_nothing(
    tmp_path: Path, new_cleaner: NewCleaningBroker
) -> None:
    broker = new_cleaner(SLOW)
    fill(broker, "kept")
    directory = directory_of(tmp_path, "kept")
    eventually(lambda: bool(list(directory.glob("*.cleaned"))))
    (cleaner,) = children(broker)

    broker.kill()

    eventually(lambda: is_gone(cleaner))
    again = new_cleaner(EAGER)
    eventually(lambda: "compacted kept-0" in output(again))
    assert not list(directory.glob("*.cleaned"))
    values = dict(read(again, "kept").values())
    assert values == expected_last_values()
