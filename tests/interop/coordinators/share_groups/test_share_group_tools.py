"""kafka-share-groups and a share consumer, beside Apache Kafka 4: what tools say and show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import Outcome

GROUP, TOPIC = "g", "t"
LINES = [f"line number {number}" for number in range(5)]
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
OF_GROUP = ("--group", GROUP)
OFFSETS_FILE = "offsets.csv"
WALK = (
    ("--list",),
    ("--list", "--state"),
    ("--describe", *OF_GROUP),
    ("--describe", *OF_GROUP, "--offsets", "--verbose"),
    ("--describe", *OF_GROUP, "--members"),
    ("--describe", *OF_GROUP, "--state"),
    ("--describe", "--group", "nobodys"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-earliest", "--dry-run"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-earliest", "--execute"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-offset", "2", "--execute"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-offset", "99", "--dry-run"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-current", "--dry-run"),
    ("--reset-offsets", *OF_GROUP, "--topic", TOPIC, "--to-latest", "--dry-run", "--export"),
    ("--reset-offsets", *OF_GROUP, "--from-file", OFFSETS_FILE, "--execute"),
    ("--describe", *OF_GROUP),
    ("--delete-offsets", *OF_GROUP, "--topic", TOPIC),
    ("--delete-offsets", *OF_GROUP, "--topic", TOPIC),
    ("--describe", *OF_GROUP),
    ("--delete", *OF_GROUP),
    ("--delete", *OF_GROUP),
    ("--list",),
)


@pytest.mark.slow
def test_tools_see_and_change_groups_as_on_apache(tmp_path: Path) -> None:
    tools = Tools(jars.KAFKA_4)
    (tmp_path / OFFSETS_FILE).write_text(f"{TOPIC},0,3\n")
    walks = []
    try:
        for make, name in ((ours, "ours"), (apache_4, "apache")):
            broker = make(tmp_path / name, SETTINGS)
            broker.start()
            try:
                walks.append(walk(tools, broker.bootstrap, tmp_path))
            finally:
                broker.kill()
    finally:
        tools.close()
    assert walks[0] == walks[1]


def walk(tools: Tools, bootstrap: str, directory: Path) -> list[object]:
    """Read with a share consumer, then act as an administrator; return the output of each step."""
    server = ("--bootstrap-server", bootstrap)
    tools.check("topics", *server, "--create", "--topic", TOPIC, "--partitions", "1")
    tools.check("console-producer", *server, "--topic", TOPIC, stdin="\n".join(LINES) + "\n")
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    of_group = ("--entity-type", "groups", "--entity-name", GROUP)
    tools.check("configs", *server, "--alter", *of_group, *earliest)
    consumer = ("console-share-consumer", *server, "--topic", TOPIC, "--group", GROUP)
    read = tools.check(*consumer, "--max-messages", "5", "--timeout-ms", "30000")
    assert sorted(line for line in read.lines if line in LINES) == LINES
    told = []
    for step in WALK:
        words = [str(directory / word) if word == OFFSETS_FILE else word for word in step]
        told.append(said(tools.run("share-groups", *server, *words), bootstrap))
    verified = ("verifiable-share-consumer", *server, "--topic", TOPIC, "--group-id", "verified")
    again = tools.run_alone(*verified, "--max-messages", "5", "--offset-reset-strategy", "earliest")
    assert again.exit_code == 0, again.errors
    received = [json.loads(line) for line in again.lines if '"records_consumed"' in line]
    assert sum(row["count"] for row in received) == len(LINES)
    return told


def said(outcome: Outcome, bootstrap: str) -> object:
    """Return exit code, output and errors of a tool, with the broker's address masked."""
    lines = [" ".join(line.replace(bootstrap, "here").split()) for line in outcome.lines]
    errors = [line for line in outcome.errors.splitlines() if not line.startswith("\t")]
    return outcome.exit_code, lines, errors
