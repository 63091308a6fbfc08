"""Bytes of messages as Kafka's own classes write them: one run of Java for many messages."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.golden.definitions import Definition

TIMEOUT_SECONDS = 250
SOURCE = Path(__file__).with_name("GoldenMessages.java")
PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
    "kafka-share-coordinator": "org.apache.kafka.coordinator.share.generated",
    "kafka-metadata": "org.apache.kafka.common.metadata",
}


@dataclass(frozen=True, slots=True)
class Question:
    """A message to write: its values as JSON, or None for one that is only constructed."""

    definition: Definition
    version: int
    value: dict[str, Any] | None

    def line(self) -> str:
        """Return the Java program's input."""
        return json.dumps(
            {"class": _class_name(self.definition), "version": self.version, "value": self.value}
        )


class RefusedError(ValueError):
    """Kafka's class does not write a message that was asked for; the text is its reason."""


def ask(kafka_version: str, questions: Iterable[Question]) -> list[bytes]:
    """The bytes of each message, in order."""
    classes = jars.compiled(kafka_version, SOURCE)
    with tempfile.TemporaryDirectory() as directory:
        asked, answers = Path(directory, "asked"), Path(directory, "answers")
        asked.write_text("".join(question.line() + "\n" for question in questions), "utf-8")
        subprocess.run(
            [
                *(jars.java_home_tool("java"), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
                *("-cp", f"{classes}:{jars.classpath(kafka_version)}"),
                *(SOURCE.stem, str(asked), str(answers)),
            ],
            check=True,
            timeout=TIMEOUT_SECONDS,
        )
        return [_answer(line) for line in answers.read_text("utf-8").splitlines()]


def _answer(line: str) -> bytes:
    if line.startswith("!"):
        raise RefusedError(line[1:])
    return bytes.fromhex(line)


def _class_name(definition: Definition) -> str:
    artifact = definition.source.rpartition("-")[0]
    suffix = "Data" if definition.kind in {"request", "response", "header"} else ""
    return f"{PACKAGES[artifact]}.{definition.name}{suffix}"
