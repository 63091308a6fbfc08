"""Honest clients beside the hostile ones: stock clients, and some that ask for Metadata.

A process of its own, so that what it measures is the broker: `python -m
tests.hostile.clients.controls PORT`. It reports on standard output, one JSON object a line: `ready`
once everything works, `stall` when Metadata was not answered for long, and at the end, which comes
with the end of its standard input, `report`.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.wire import METADATA, RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Callable

LEDGER: Final = "ledger"
"""Numbered records of an idempotent producer, one partition after the other."""
TRANSFERS: Final = "transfers"
"""Pairs of records, each in a transaction, every third of which is aborted."""
TOPICS: Final = (LEDGER, TRANSFERS)
PARTITIONS: Final = 3
GROUP: Final = "bookkeepers"
TRANSACTIONAL_ID: Final = "clerk"
ABORTED_EACH: Final = 3

ASKERS: Final = 10
ASK_SECONDS: Final = 0.1
"""Between two questions of one asker."""
STALL_SECONDS: Final = 2.0
GIVE_UP_SECONDS: Final = 60.0
RECORD_SECONDS: Final = 0.005
TRANSACTION_SECONDS: Final = 0.25
CALL_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.2
UNDONE_SECONDS: Final = 45.0
"""Time for a consumer to reach the acknowledged records."""


@dataclass(slots=True)
class Controls:
    """Results to compare at the end; each list is filled by one thread."""

    port: int
    over: threading.Event = field(default_factory=threading.Event)
    latencies_ms: list[float] = field(default_factory=list)
    acknowledged: dict[int, dict[int, int]] = field(default_factory=dict)
    """Of the ledger: by partition, the number of the record at each offset."""
    read: dict[int, int] = field(default_factory=dict)
    """Of the ledger: by partition, how many records a consumer has read in order."""
    committed_transfers: int = 0
    group_records: int = 0
    group_seconds_of_silence: float = 0.0
    problems: list[str] = field(default_factory=list)
    asked_at: dict[int, float] = field(default_factory=dict)
    """Time of each asker's unanswered Metadata request; 0 without one."""

    @property
    def bootstrap(self) -> str:
        """Return the bootstrap servers for clients."""
        return f"127.0.0.1:{self.port}"


def tell(kind: str, **values: Any) -> None:
    """Write one line for the process that started this one."""
    print(json.dumps({"kind": kind, **values}), flush=True)


def main() -> int:
    """Run until standard input ends."""
    controls = Controls(int(sys.argv[1]))
    _create_topics(controls.bootstrap)
    threads = [
        threading.Thread(target=_guarded, args=(work, controls), daemon=True) for work in WORK
    ]
    for thread in threads:
        thread.start()
    while not (controls.read and controls.group_records and controls.committed_transfers):
        if controls.problems:
            break
        time.sleep(POLL_SECONDS)
    controls.latencies_ms.clear()
    tell("ready")
    sys.stdin.read()
    controls.over.set()
    for thread in threads:
        thread.join(2 * UNDONE_SECONDS)
        if thread.is_alive():
            controls.problems.append(f"{thread.name} does not end")
    _report(controls)
    return 0


def _report(controls: Controls) -> None:
    tell(
        "report",
        latencies_ms=[round(value, 3) for value in controls.latencies_ms],
        acknowledged={
            partition: sorted(numbers.items())
            for partition, numbers in controls.acknowledged.items()
        },
        committed_transfers=controls.committed_transfers,
        group_records=controls.group_records,
        group_seconds_of_silence=round(controls.group_seconds_of_silence, 3),
        problems=controls.problems,
    )


def _guarded(work: Callable[[Controls], None], controls: Controls) -> None:
    name = getattr(work, "__name__", "ask metadata").strip("_")
    threading.current_thread().name = name
    try:
        work(controls)
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        controls.problems.append(f"{name}: {error!r}")
        tell("problem", text=controls.problems[-1])


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"retention.ms": "-1", "retention.bytes": "-1", "min.insync.replicas": "1"}
    topics = [NewTopic(name, PARTITIONS, 1, config=config) for name in TOPICS]
    for created in admin.create_topics(topics).values():
        created.result(CALL_SECONDS)


def _ask_metadata(controls: Controls) -> None:
    """Ask for one topic's Metadata a hundred times a second, by so many clients.

    With one client alone, what takes longer than a question's hundredth of a second for a while
    would add up to seconds that no client waits.
    """
    with ThreadPoolExecutor(ASKERS) as askers:
        for number in range(ASKERS):
            askers.submit(_guarded, partial(_ask_now_and_then, number), controls)


def _ask_now_and_then(number: int, controls: Controls) -> None:
    """Note how long answers take, measured from the time at which a question was due."""
    name = LEDGER.encode()
    body = struct.pack(">ih", 1, len(name)) + name
    correlation_id = 0
    due = time.perf_counter() + number * ASK_SECONDS / ASKERS
    with RawConnection.open(controls.port, GIVE_UP_SECONDS) as connection:
        while not controls.over.wait(max(0.0, due - time.perf_counter())):
            correlation_id += 1
            controls.asked_at[number] = time.monotonic()
            answer = connection.ask(request_header(METADATA, 1, correlation_id) + body)
            controls.asked_at[number] = 0.0
            controls.latencies_ms.append((time.perf_counter() - due) * 1000)
            due += ASK_SECONDS
            assert struct.unpack_from(">i", answer) == (correlation_id,)


def _watch_for_stalls(controls: Controls) -> None:
    """Tell of a question that is not answered while it is not, so that frames can be saved."""
    told: set[float] = set()
    while not controls.over.wait(POLL_SECONDS):
        for asked_at in [*controls.asked_at.values()]:
            is_late = asked_at and time.monotonic() - asked_at > STALL_SECONDS
            if is_late and asked_at not in told:
                told.add(asked_at)
                tell("stall")


def _keep_ledger(controls: Controls) -> None:
    """Write numbered records with an idempotent producer, five requests under way."""
    producer = Producer(
        {
            "bootstrap.servers": controls.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "delivery.timeout.ms": 120_000,
        }
    )
    failures: list[str] = []

    def note(number: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, record: Any) -> None:
            if error is not None:
                failures.append(f"record {number} of the ledger: {error}")
                return
            numbers = controls.acknowledged.setdefault(record.partition(), {})
            numbers[record.offset()] = number

        return delivered

    number = 0
    while not controls.over.wait(RECORD_SECONDS):
        producer.produce(
            LEDGER, b"%d" % number, partition=number % PARTITIONS, on_delivery=note(number)
        )
        number += 1
        producer.poll(0)
    left = producer.flush(UNDONE_SECONDS)
    controls.problems.extend(failures[:5])
    if left:
        controls.problems.append(f"{left} records of the ledger were not acknowledged")


def _read_ledger(controls: Controls) -> None:
    """Read all along; each partition holds every third number, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": controls.bootstrap,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(LEDGER, number, 0) for number in range(PARTITIONS)])
    deadline = 0.0
    while not _is_read(controls):
        record = consumer.poll(POLL_SECONDS)
        if controls.over.is_set():
            deadline = deadline or time.monotonic() + UNDONE_SECONDS
            if time.monotonic() > deadline:
                controls.problems.append(f"the ledger was read to {controls.read} only")
                break
        if record is None:
            continue
        if record.error():
            controls.problems.append(f"reading the ledger: {record.error()}")
            continue
        _check_record(controls, record)
    consumer.close()


def _check_record(controls: Controls, record: Any) -> None:
    partition = record.partition()
    count = controls.read.get(partition, 0)
    expected = count * PARTITIONS + partition
    if int(record.value()) != expected and len(controls.problems) < 20:
        controls.problems.append(
            f"ledger-{partition} has {record.value()!r} at {record.offset()}, not {expected}"
        )
    controls.read[partition] = count + 1


def _is_read(controls: Controls) -> bool:
    """Return whether all acknowledged records have been read; False before the end."""
    return controls.over.is_set() and all(
        controls.read.get(partition, 0) >= len(numbers)
        for partition, numbers in controls.acknowledged.items()
    )


def _read_in_group(controls: Controls) -> None:
    """Read as a member of a group that commits; it should never be silent for long."""
    consumer = Consumer(
        {
            "bootstrap.servers": controls.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe([LEDGER])
    last = time.monotonic()
    while not controls.over.is_set():
        record = consumer.poll(POLL_SECONDS)
        if record is None:
            continue
        if record.error():
            controls.problems.append(f"reading in a group: {record.error()}")
            continue
        now = time.monotonic()
        if controls.group_records:
            silence = now - last
            controls.group_seconds_of_silence = max(controls.group_seconds_of_silence, silence)
        last = now
        controls.group_records += 1
    consumer.close()


def _transfer(controls: Controls) -> None:
    """Write pairs in transactions, with positions; abort every third."""
    producer = Producer(
        {
            "bootstrap.servers": controls.bootstrap,
            "transactional.id": TRANSACTIONAL_ID,
            "transaction.timeout.ms": 30_000,
        }
    )
    producer.init_transactions(CALL_SECONDS)
    number = 0
    while not controls.over.wait(TRANSACTION_SECONDS):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(TRANSFERS, b"%d" % number, partition=partition)
        _finish(producer, is_aborted=number % ABORTED_EACH == ABORTED_EACH - 1)
        controls.committed_transfers += number % ABORTED_EACH != ABORTED_EACH - 1
        number += 1


def _finish(producer: Producer, *, is_aborted: bool) -> None:
    end = producer.abort_transaction if is_aborted else producer.commit_transaction
    while True:
        try:
            end(CALL_SECONDS)
        except KafkaException as refused:
            if not refused.args[0].retriable():
                raise
        else:
            return


WORK: Final = (
    *(_ask_metadata, _watch_for_stalls, _keep_ledger),
    *(_read_ledger, _read_in_group, _transfer),
)

if __name__ == "__main__":
    sys.exit(main())
