"""Apache Kafka's configuration keys, and its complaints about values of theirs."""

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
SOURCE = Path(__file__).with_name("GoldenConfigs.java")


def keys(kind: str) -> dict[str, tuple[str, str]]:
    """Type and bounds of each key of `broker`, `topic`, `group` or `client metrics`."""
    answers = (line.split("\t") for line in _ask([kind]))
    return {name: (key_type, bounds) for name, key_type, bounds in answers}


def complaints(values: Iterable[tuple[str, str, str]]) -> list[str]:
    """Complaint about each (kind, key, text); empty where the value is taken."""
    return _ask("\t".join(value) for value in values)


def _ask(lines: Iterable[str]) -> list[str]:
    classes = jars.compiled(jars.KAFKA_4, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        asked.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), *SHORT_LIVED_FLAGS),
                *("-cp", f"{classes}:{jars.classpath(jars.KAFKA_4)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        return answers.read_text("utf-8").splitlines()
