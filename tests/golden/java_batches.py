"""Record batches as Kafka's own classes write and read them; and what `golden/batches.txt` keeps.

The description of a batch is one line of text that the Java program and `describe` write alike:
the header's facts, then for each record its offset, time, key, value and headers.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.records.batch import parse_header
from protocol.records.record import iterate_records
from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT_SECONDS = 250
SOURCE = Path(__file__).with_name("GoldenBatches.java")
KEPT = Path(__file__).with_name("batches.txt")
"""Name, bytes and description of each batch that Kafka 4.3.1 made, for machines without Java."""


@dataclass(frozen=True, slots=True)
class GoldenBatch:
    """A batch that Kafka's classes made, and how they describe it."""

    name: str
    data: bytes
    description: str

    def line(self) -> str:
        """Its line in `batches.txt`."""
        return f"{self.name}\t{self.data.hex()}\t{self.description}\n"


@dataclass(frozen=True, slots=True)
class JavaAnswers:
    """All that one run of the program says."""

    read: list[str]
    """Descriptions of the batches handed in, or an exclamation mark and the reason."""
    wrote: list[GoldenBatch]
    errors: dict[int, tuple[str, bool]]
    """Name and retriability of each error code."""


def ask(batches: Iterable[bytes | bytearray]) -> JavaAnswers:
    """Have Kafka 4.3.1 read `batches`."""
    classes = jars.compiled(jars.KAFKA_4, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        asked.write_text("".join(batch.hex() + "\n" for batch in batches), "utf-8")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{classes}:{jars.classpath(jars.KAFKA_4)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        return _parse(answers.read_text("utf-8").splitlines())


def kept() -> list[GoldenBatch]:
    """The batches of `batches.txt`."""
    return [_golden(line.split("\t")) for line in KEPT.read_text("utf-8").splitlines()]


def describe(batch: bytes | bytearray) -> str:
    """Our description of a batch, with our reader."""
    header = parse_header(batch)
    facts = (
        *(header.base_offset, header.last_offset, header.size_in_bytes),
        *(header.partition_leader_epoch, header.max_timestamp),
        *(header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence),
        *(header.record_count, header.codec.name.lower()),
        "LogAppendTime" if header.is_log_append_time else "CreateTime",
        *(str(header.is_transactional).lower(), str(header.is_control).lower()),
    )
    parts = [" ".join(str(fact) for fact in facts)]
    for record in iterate_records(batch):
        words = [str(record.offset), str(record.timestamp), _hex(record.key), _hex(record.value)]
        words += [f"{name.encode().hex()}={_hex(value)}" for name, value in record.headers]
        parts.append(" ".join(words))
    return ";".join(parts)


def _hex(data: bytes | None) -> str:
    return "null" if data is None else data.hex()


def _parse(lines: list[str]) -> JavaAnswers:
    answers = JavaAnswers([], [], {})
    for line in lines:
        kind, *rest = line.split("\t")
        if kind == "read":
            answers.read.append(rest[0])
        elif kind == "wrote":
            answers.wrote.append(_golden(rest))
        else:
            answers.errors[int(rest[0])] = (rest[1], rest[2] == "true")
    return answers


def _golden(words: list[str]) -> GoldenBatch:
    name, data, description = words
    return GoldenBatch(name, bytes.fromhex(data), description)
