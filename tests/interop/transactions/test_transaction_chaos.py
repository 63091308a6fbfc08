"""Transactions of several clients while they and the broker are killed and logs are cleaned.

Each transaction writes the same records to three topics: one keeps everything, one is compacted,
one keeps little. Afterwards a transaction is visible whole in all partitions of the first, or not
at all; what was acknowledged as committed is there, once and in order; the second has at least the
last value of every key, the third the latest part, both in the same order.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients.reading import ConfluentReader
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import SHORT_SESSIONS, against_apache, create_topic, eventually
from tests.interop.workloads.restarted import Restarted
from tests.interop.workloads.transactor import TransactorOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess

PARTITIONS = 2
BUSY = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "50",
}
LEDGER, TABLE, WINDOW = "ledger", "table", "window"
TOPICS = {
    LEDGER: {"segment.ms": "2000"},
    TABLE: {
        "segment.ms": "300",
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "300",
    },
    WINDOW: {"segment.ms": "300", "retention.bytes": "6000"},
}
WRITERS = {
    "confluent-1": "confluent-kafka",
    "confluent-2": "confluent-kafka",
    "aio": "aiokafka",
    "python": "kafka-python",
}
EVENTS = 2 if against_apache() else 6
TRANSACTIONS_BETWEEN = 25
WAIT_SECONDS = 300.0

Record = tuple[str, str]
"""Key and value."""


@dataclass(slots=True)
class Told:
    """A writer's report on one transaction; no state if it was never to be committed."""

    records: dict[int, list[Record]] = field(default_factory=lambda: defaultdict(list))
    state: str = ""


class Writer:
    """A transactional id, through all its restarts."""

    def __init__(self, name: str, bootstrap: str, directory: Path) -> None:
        options = TransactorOptions(WRITERS[name], bootstrap, name, tuple(TOPICS), PARTITIONS)
        self.name = name
        self._output = directory / f"{name}.out"
        module = "tests.interop.workloads.transactor"
        self.process = Restarted.python(name, module, options.to_json(), self._output)

    def told(self) -> dict[str, Told]:
        """Return its transactions in their order."""
        found: dict[str, Told] = defaultdict(Told)
        for line in self._output.read_text(errors="replace").splitlines():
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            transaction = found[row["txn"]]
            transaction.state = row.get("state", "")
            for partition, key, value in row.get("records", ()):
                transaction.records[partition].append((key, value))
        return found

    def committed(self) -> int:
        self.process.keep_up()
        return sum(one.state == "committed" for one in self.told().values())


@pytest.fixture
def busy_broker(new_broker: NewBroker, tmp_path: Path) -> Iterator[BrokerProcess]:
    process = new_broker(tmp_path / "busy", SHORT_SESSIONS | BUSY)
    process.start()
    admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
    for topic, config in TOPICS.items():
        create_topic(admin, topic, PARTITIONS, config)
    yield process
    process.kill()


@pytest.fixture
def writers(busy_broker: BrokerProcess, tmp_path: Path) -> Iterator[list[Writer]]:
    started = [Writer(name, busy_broker.bootstrap, tmp_path) for name in WRITERS]
    yield started
    for writer in started:
        writer.process.kill()


def read(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    """Return committed keys and values, by partition."""
    found: dict[int, list[Record]] = {partition: [] for partition in range(PARTITIONS)}
    with closing(ConfluentReader(bootstrap, topic, "any")) as reader:
        ends = reader.ends()
        while any(reader.positions()[partition] < end for partition, end in ends.items()):
            for message in reader.messages(500):
                row = (message.key().decode(), message.value().decode())
                found[message.partition()].append(row)
    return found


def cleaned(bootstrap: str, topic: str, ledger: dict[int, list[Record]]) -> dict[int, list[Record]]:
    """Read a topic as `read` does, once fewer records are left in it than in the one for all."""
    written = sum(map(len, ledger.values()))
    found = {}

    def is_cleaned() -> bool:
        found.update(read(bootstrap, topic))
        return sum(map(len, found.values())) < written

    eventually(is_cleaned, WAIT_SECONDS)
    return found


def of(writer: Writer, records: list[Record]) -> list[Record]:
    return [row for row in records if row[1].startswith(writer.name + ":")]


def check_ledger(writer: Writer, ledger: dict[int, list[Record]]) -> None:
    """Compare all records of a writer with its report."""
    seen = {value for records in ledger.values() for _, value in records}
    wanted: dict[int, list[Record]] = {partition: [] for partition in ledger}
    for transaction in writer.told().values():
        values = {value for records in transaction.records.values() for _, value in records}
        was_undecided = transaction.state == "committing"
        if transaction.state == "committed" or (was_undecided and values & seen):
            for partition, records in transaction.records.items():
                wanted[partition] += records
    assert {partition: of(writer, records) for partition, records in ledger.items()} == wanted


def check_table(ledger: list[Record], table: list[Record]) -> None:
    """Compare a writer's part of a compacted partition with that of the one that keeps all."""
    kept = set(table)
    assert [row for row in ledger if row in kept] == table, "nothing else, and in order"
    assert dict(table) == dict(ledger), "the last value of each key"


def check_window(ledger: list[Record], window: list[Record]) -> None:
    """Compare a writer's part of a partition that keeps little with that of the one for all."""
    assert ledger[len(ledger) - len(window) :] == window


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7])
def test_transactions_are_atomic_when_brokers_and_writers_are_killed(
    busy_broker: BrokerProcess, writers: list[Writer], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(EVENTS):
        wanted = sum(writer.committed() for writer in writers) + TRANSACTIONS_BETWEEN
        eventually(lambda: sum(w.committed() for w in writers) >= wanted, WAIT_SECONDS)  # noqa: B023
        victim = chance.choice([*writers, None, None])
        if victim is not None:
            victim.process.kill()
        if victim is None or chance.choice([True, False]):
            busy_broker.kill()
            busy_broker.start()
    for writer in writers:
        writer.process.kill()
        # What it left behind is ended before this one is served.
        ConfluentProducer(busy_broker.bootstrap, writer.name).close()

    ledger = read(busy_broker.bootstrap, LEDGER)
    # Of a transaction that was open for long, nothing is cleaned before it has ended.
    table, window = (cleaned(busy_broker.bootstrap, topic, ledger) for topic in (TABLE, WINDOW))
    for writer in writers:
        check_ledger(writer, ledger)
        for partition, records in ledger.items():
            check_table(of(writer, records), of(writer, table[partition]))
            check_window(of(writer, records), of(writer, window[partition]))
