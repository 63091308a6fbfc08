"""The controls' records after a restart of the broker, compared with those acknowledged."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, TopicPartition

from tests.hostile.clients.controls import LEDGER, PARTITIONS, TRANSFERS

if TYPE_CHECKING:
    from tests.hostile.clients.control_process import ControlReport
    from tests.hostile.findings import Findings

READ_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.2


def compare(bootstrap: str, report: ControlReport, findings: Findings) -> int:
    """Read both topics whole; returns how many records the ledger has."""
    ledger = _read(bootstrap, LEDGER, PARTITIONS, findings)
    for partition, numbers in report.acknowledged.items():
        stored = ledger.get(partition, {})
        wrong = [offset for offset, number in numbers.items() if stored.get(offset) != number]
        if wrong:
            findings.add(
                "lost or changed",
                f"{len(wrong)} of {len(numbers)} records of ledger-{partition}, "
                f"first at {wrong[0]}: {stored.get(wrong[0])}, not {numbers[wrong[0]]}",
            )
        values = list(stored.values())
        if values != sorted(set(values)):
            findings.add("lost or changed", f"ledger-{partition} is not in order, or has doubles")
    _compare_transfers(bootstrap, report, findings)
    return sum(map(len, ledger.values()))


def _compare_transfers(bootstrap: str, report: ControlReport, findings: Findings) -> None:
    """Both partitions hold the same committed numbers, each once, as many as were committed."""
    transfers = _read(bootstrap, TRANSFERS, 2, findings)
    left, right = (list(transfers.get(partition, {}).values()) for partition in (0, 1))
    if left != right or len(set(left)) != len(left):
        findings.add("transactions", "a transaction is there in part, or twice")
    if len(left) != report.committed_transfers:
        findings.add(
            "transactions", f"{report.committed_transfers} were committed, {len(left)} are there"
        )


def _read(
    bootstrap: str, topic: str, partitions: int, findings: Findings
) -> dict[int, dict[int, int]]:
    """Committed records by partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "afterwards",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: dict[int, dict[int, int]] = {number: {} for number in range(partitions)}
    open_partitions = set(found)
    deadline = time.monotonic() + READ_SECONDS
    while open_partitions:
        record: Any = consumer.poll(POLL_SECONDS)
        if time.monotonic() > deadline:
            findings.add("lost or changed", f"{topic} cannot be read to its end")
            break
        if record is None:
            continue
        if record.error():
            open_partitions.discard(record.partition())
        else:
            found[record.partition()][record.offset()] = int(record.value())
    consumer.close()
    return found
