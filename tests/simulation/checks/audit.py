"""The final logs, compared with the records sent, acknowledged and read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from protocol.records.batch import iterate_headers
from protocol.records.record import iterate_records
from tests.simulation.checks.watchman import Violation
from tests.simulation.clients.producers import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.partitions.partition import Partition
    from tests.simulation.clients.producers import Producer
    from tests.simulation.clients.readers import Reader
    from tests.simulation.clients.values import At, Origin
    from tests.simulation.run import Run


def audit(run: Run) -> None:
    """Compare everything; raises Violation."""
    for at in run.audited:
        stored = _stored(run, at)
        origins = {
            offset: run.sent.recognise(at, value, f"offset {offset}")
            for offset, value in stored.items()
        }
        _check_order(run, at, list(origins.values()))
        for producer in run.all_producers:
            _check_acknowledged(run, at, stored, producer)
        for reader in run.readers:
            if reader.at == at:
                _check_read(at, origins, reader)


def _stored(run: Run, at: At) -> dict[int, bytes]:
    """The records of a partition, by offset; the same on all replicas."""
    copies = {
        b"".join(map(bytes, _batches(partition)))
        for _, partition in run.cluster.partitions()
        if (partition.topic, partition.index) == at
    }
    if len(copies) != 1:
        raise Violation(f"replicas of {at[0]}-{at[1]} differ")
    return dict(_records(copies.pop()))


def _check_order(run: Run, at: At, origins: list[Origin]) -> None:
    """Each record at most once, and the records of a writer in the order in which they were sent.

    Of an idempotent producer none is missing between two others.
    """
    where = f"partition {at[0]}-{at[1]}"
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for writer, number in origins:
        numbers[writer].append(number)
    idempotent = {one.name for one in run.all_producers if one.kind.is_idempotent}
    for writer, found in numbers.items():
        if len(set(found)) != len(found):
            twice = next(number for number in found if found.count(number) > 1)
            raise Violation(f"{where} holds record {twice} of {writer} twice")
        if found != sorted(found):
            raise Violation(f"{where} holds the records of {writer} out of order: {found}")
        if writer in idempotent and found != list(range(len(found))):
            raise Violation(f"{where} lacks records of {writer}: {found}")


def _check_acknowledged(run: Run, at: At, stored: dict[int, bytes], producer: Producer) -> None:
    """Check that acknowledged records are at their offsets, unaltered."""
    for one in producer.acknowledged.get(at, []):
        if stored.get(one.offset) == one.value:
            continue
        is_by_leader_alone = producer.kind.acks != ACKS_ALL and run.factor(at) > 1
        if is_by_leader_alone and not run.watchman.leads_since(at, one.broker, one.sent_at):
            continue  # and that has been another one since
        raise Violation(
            f"partition {at[0]}-{at[1]}: {one.value[:40]!r} was acknowledged to {producer.name} at "
            f"{one.offset}, where {stored.get(one.offset, b'nothing')[:40]!r} is"
        )


def _check_read(at: At, origins: dict[int, Origin], reader: Reader) -> None:
    """Check that records read are still in the log."""
    for offset, origin in reader.seen.items():
        if origins.get(offset) != origin:
            raise Violation(
                f"{reader.name} has read {origin} at offset {offset} of {at[0]}-{at[1]}, "
                f"where {origins.get(offset)} is"
            )


def _batches(partition: Partition) -> Iterator[memoryview]:
    log = partition.log
    yield from log.read_batches(log.log_start_offset, log.log_end_offset)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    view = memoryview(data)
    for position, header in iterate_headers(view):
        for record in iterate_records(view[position : position + header.size_in_bytes]):
            assert record.value is not None
            yield record.offset, bytes(record.value)
