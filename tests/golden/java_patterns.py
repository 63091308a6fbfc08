"""Matches of transactional id patterns by RE2/J, which Apache Kafka has for them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TIMEOUT_SECONDS = 250
SOURCE = Path(__file__).with_name("GoldenPatterns.java")


def ask(patterns: Iterable[str], texts: Sequence[str]) -> list[list[bool] | None]:
    """For each pattern which texts it matches whole, None if it is refused; neither holds a tab."""
    classes = jars.compiled(jars.KAFKA_4, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        lines = ("\t".join([pattern, *texts]) + "\n" for pattern in patterns)
        asked.write_text("".join(lines), "utf-8")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{classes}:{jars.classpath(jars.KAFKA_4)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        told = answers.read_text("utf-8").splitlines()
    return [None if line.startswith("!") else [each == "1" for each in line] for line in told]
