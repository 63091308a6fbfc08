"""Apache Kafka's reading of strings whose bytes are not UTF-8."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import jars
from tests.support.java_command import SHORT_LIVED_FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT_SECONDS = 250
SOURCE = Path(__file__).with_name("GoldenText.java")


def ask(contents: Iterable[bytes]) -> list[str]:
    """The text of each; none is empty."""
    classes = jars.compiled(jars.KAFKA_4, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        asked.write_text("".join(f"{content.hex()}\n" for content in contents), "ascii")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), *SHORT_LIVED_FLAGS),
                *("-cp", f"{classes}:{jars.classpath(jars.KAFKA_4)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        return [bytes.fromhex(line).decode() for line in answers.read_text("ascii").splitlines()]
