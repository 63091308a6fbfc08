"""Runs what blocks of the documentation show of a terminal.

A line that begins with `$ ` is a command, those that follow it without that are its output, which
is compared. Commands of Apache Kafka (`kafka-topics.sh`) run in one JVM, all others in a shell.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.documents.pages import Block
    from tests.support.tools import Tools

PROMPT = "$ "
SECONDS = 120.0
WORKS_WHILE_IT_ENDS = "console-consumer"
_TOOL = re.compile(r"kafka-([a-z0-9-]+)\.sh$")
_COUNT = re.compile(r"^Processed a total of .*$", re.MULTILINE)
_TOPIC_ID = re.compile(r"TopicId: \S+")
_LEADER = re.compile(r"Leader: \d+\tReplicas: [\d,]+\tIsr: ([\d,]+)(\tElr: .*)?")
_QUICK_DELETION = ",file.delete.delay.ms=1000"
"""Embedded brokers have it, brokers of the pages have the default."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page, and its output there."""

    line: str
    output: str


@dataclass(slots=True)
class Console:
    """A terminal in a directory: `names` says what stands for what, as ports do."""

    tools: Tools
    directory: Path
    names: Mapping[str, str] = field(default_factory=dict)

    def run(self, block: Block) -> None:
        """Run each command; AssertionError where it fails or prints something else."""
        for command in commands(block):
            said = self._printed(self.named(command.line))
            if command.output:
                shown = comparable(self.named(command.output))
                assert comparable(said) == shown, f"{command.line} says {said}"

    def named(self, text: str) -> str:
        """Replace what the page names by what is there."""
        for name, meant in self.names.items():
            text = text.replace(name, meant)
        return text

    def _printed(self, line: str) -> str:
        before, _, last = line.rpartition("|")
        words = shlex.split(last, comments=True)
        found = _TOOL.fullmatch(words[0])
        if found is None:
            return self._in_shell(line)
        stdin = self._in_shell(before) if before else ""
        if found[1] == WORKS_WHILE_IT_ENDS:
            ended = self.tools.run_alone(found[1], *words[1:], stdin=stdin)
            assert ended.exit_code == 0, ended.errors
            return ended.output + "\n".join(_COUNT.findall(ended.errors))
        return self.tools.check(found[1], *words[1:], stdin=stdin).output

    def _in_shell(self, line: str) -> str:
        ended = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", line],
            cwd=self.directory,
            env={"PATH": f"{REPOSITORY}/.venv/bin:/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{line}: {ended.stdout}{ended.stderr}"
        return ended.stdout


def commands(block: Block) -> Iterator[Command]:
    r"""Yield the commands of a block, those over several lines joined where a line ends with \."""
    text = block.text.replace("\\\n", " ")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


def comparable(text: str) -> list[str]:
    """Return lines without what differs each time: ids, and which broker leads what."""
    text = _TOPIC_ID.sub("TopicId: ID", text.replace(_QUICK_DELETION, ""))
    text = _LEADER.sub(lambda match: f"in sync: {match[1].count(',') + 1}", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
