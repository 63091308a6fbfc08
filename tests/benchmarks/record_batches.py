"""Cost of record batches: microseconds of processor time for each operation on one.

    python -m tests.benchmarks.record_batches [--smoke]

The batches are those of a producer with Java's default `batch.size` of 16 KB. Each number is the
best of several rounds, as what disturbs a round can only make it slower.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.records.batch import assign_base_offset, compute_crc, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from protocol.records.validation import ProduceRules, check_produced
from tests.benchmarks.measurement.timing import best_microseconds, is_smoke_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NOW = 1_700_000_000_000
BATCH_BYTES = 16_384
RECORD_OVERHEAD_BYTES = 8
PLAIN = ProduceRules()
COMPACTED = ProduceRules(is_compacted=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing."""

    name: str
    microseconds: float
    records: int
    size: int

    def text(self) -> str:
        """A line of the table."""
        return f"{self.name:44} {self.records:>7} {self.size:>9} {self.microseconds:>9.2f}"


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Measure, print and return every row."""
    is_smoke = is_smoke_run("What record batches cost.", arguments)
    rows = []
    print(f"{'':44} {'records':>7} {'bytes':>9} {'us':>9}")
    for name, batch, work in _measured(1024 if is_smoke else BATCH_BYTES):
        microseconds = 0.0 if is_smoke else best_microseconds(work)
        if is_smoke:
            work()
        rows.append(Row(name, microseconds, parse_header(batch).record_count, len(batch)))
        print(rows[-1].text())
    return rows


def _measured(size: int) -> Iterator[tuple[str, bytearray, Callable[[], object]]]:
    for record_bytes in (10, 100, 1000):
        records = _even(record_bytes, size)
        batch = build_batch(records)
        if record_bytes == 100:
            yield from _parts(batch)
        yield f"check, records of {record_bytes} B", batch, _check(batch)
        uneven = build_batch(_uneven(record_bytes, size))
        yield f"check, {record_bytes} B, give or take 40%", uneven, _check(uneven)
        for codec in list(Codec)[1:]:
            compressed = build_batch(_text(record_bytes, size), codec=codec)
            name = f"check, {record_bytes} B of text, {codec.name.lower()}"
            yield name, compressed, _check(compressed)
        keyed = build_batch(_even(record_bytes, size, b"k"))
        yield f"check, {record_bytes} B, compacted topic", keyed, _check(keyed, COMPACTED)
    single = build_batch(_even(100, 1))
    yield "check, one record of 100 B", single, _check(single)
    large = build_batch(_even(100, 55 * size))
    yield "check, 100 B, batch near max.message.bytes", large, _check(large)
    uneven = build_batch(_uneven(10, 55 * size))
    yield "check, 10 B uneven, batch near max.message.bytes", uneven, _check(uneven)


def _parts(batch: bytearray) -> Iterator[tuple[str, bytearray, Callable[[], object]]]:
    view = memoryview(batch)
    records = [NewRecord(*record[1:]) for record in iterate_records(batch)]
    yield "parse_header", batch, lambda: parse_header(view)
    yield "compute_crc", batch, lambda: compute_crc(view, 0, len(view))
    yield "assign_base_offset", batch, lambda: assign_base_offset(view, 0, 0, 7)
    yield "iterate_records, all", batch, lambda: list(iterate_records(view))
    yield "build_batch, all", batch, lambda: build_batch(records)


def _check(batch: bytearray, rules: ProduceRules = PLAIN) -> Callable[[], object]:
    view = memoryview(batch)
    view[:8] = bytes(8)
    return lambda: check_produced(view, rules, NOW, 9)


def _even(record_bytes: int, size: int, key: bytes | None = None) -> list[NewRecord]:
    count = max(1, size // (record_bytes + RECORD_OVERHEAD_BYTES))
    return [NewRecord(NOW + i // 20, key, bytes(record_bytes)) for i in range(count)]


def _uneven(record_bytes: int, size: int) -> list[NewRecord]:
    draw = random.Random(1)
    return [
        record._replace(value=bytes(round(record_bytes * draw.uniform(0.6, 1.4))))
        for record in _even(record_bytes, size)
    ]


def _text(record_bytes: int, size: int) -> list[NewRecord]:
    """Half of each value is digits that differ, half is the same text."""
    draw = random.Random(2)
    half = record_bytes // 2
    return [
        record._replace(value=str(draw.random())[-half:].encode().ljust(record_bytes, b"a"))
        for record in _even(record_bytes, size)
    ]


if __name__ == "__main__":
    main()
