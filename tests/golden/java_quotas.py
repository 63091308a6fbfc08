"""Readings of Apache Kafka's rates and token buckets, amount by amount."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT_SECONDS = 250
SOURCE = Path(__file__).with_name("GoldenQuotas.java")


class Measured(NamedTuple):
    """After one amount."""

    value: float
    """The rate, or the tokens left."""
    elapsed_ms: int
    rest_ms: int


def ask(lines: Iterable[str]) -> list[Measured]:
    """One for each line `rate AMOUNT LIMIT NOW_MS` or `bucket …`; `span COUNT MS` begins anew."""
    classes = jars.compiled(jars.KAFKA_4, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        asked.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{classes}:{jars.classpath(jars.KAFKA_4)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        told = [line.split(" ") for line in answers.read_text("utf-8").splitlines()]
    return [Measured(float(value), int(elapsed), int(rest)) for value, elapsed, rest in told]
