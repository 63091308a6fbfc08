"""The console and verifiable producers and consumers, and kafka-consumer-groups."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Record, Sending, numbered_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.interop.conftest import NewName, NewTopicFunction
    from tests.support.tools import Outcome, Tools

LINES = [f"line number {number}" for number in range(20)]


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return ("--bootstrap-server", bootstrap)


def events(outcome: Outcome, name: str) -> list[dict[str, object]]:
    """Return the JSON lines of a verifiable client that carry `name`."""
    rows = [json.loads(line) for line in outcome.lines if line.startswith("{")]
    return [row for row in rows if row["name"] == name]


def table(outcome: Outcome, first_heading: str = "GROUP") -> list[dict[str, str]]:
    """Return the rows of a printed table, by heading; cells must not hold blanks."""
    lines = outcome.lines
    start = next(i for i, line in enumerate(lines) if line.startswith(first_heading))
    headings = lines[start].split()
    return [dict(zip(headings, line.split(), strict=False)) for line in lines[start + 1 :]]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_console_producer_feeds_console_consumer(
    tools: Tools, server: tuple[str, str], new_topic: NewTopicFunction, codec: str
) -> None:
    topic = new_topic()

    tools.check(
        *("console-producer", *server, "--topic", topic, "--compression-codec", codec),
        stdin="\n".join(LINES) + "\n",
    )
    read = tools.check(
        *("console-consumer", *server, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(len(LINES)), "--timeout-ms", "20000"),
    )

    assert read.lines[-len(LINES) :] == LINES
    assert f"Processed a total of {len(LINES)} messages" in read.errors


def test_console_consumer_starts_at_a_partition_and_offset(
    tools: Tools, server: tuple[str, str], bootstrap: str, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(partitions=2)
    sent = [Record(1, f"k{number}".encode(), f"v{number}".encode()) for number in range(8)]
    confluent.produce(bootstrap, topic, sent, Sending())

    read = tools.check(
        *("console-consumer", *server, "--topic", topic, "--partition", "1", "--offset", "6"),
        *("--property", "print.key=true", "--property", "print.offset=true"),
        *("--property", "print.partition=true", "--max-messages", "2", "--timeout-ms", "20000"),
    )

    assert read.lines[-2:] == ["Partition:1\tOffset:6\tk6\tv6", "Partition:1\tOffset:7\tk7\tv7"]


def test_verifiable_clients_agree(
    tools: Tools,
    server: tuple[str, str],
    new_topic: NewTopicFunction,
    new_group: Callable[[], str],
) -> None:
    topic = new_topic(partitions=2)

    produced = tools.run_alone(
        "verifiable-producer", *server, "--topic", topic, "--max-messages", "50", "--acks", "-1"
    )
    consumed = tools.check(
        *("verifiable-consumer", *server, "--topic", topic, "--group-id", new_group()),
        *("--max-messages", "50", "--reset-policy", "earliest"),
    )

    assert produced.exit_code == 0, produced.errors
    successes = events(produced, "producer_send_success")
    assert sorted(int(str(row["value"])) for row in successes) == list(range(50))
    assert not events(produced, "producer_send_error")
    (data,) = events(produced, "tool_data")
    assert (data["sent"], data["acked"]) == (50, 50)
    assert sum(int(str(row["count"])) for row in events(consumed, "records_consumed")) == 50
    assert all(row["success"] for row in events(consumed, "offsets_committed"))


def test_group_is_listed_described_reset_and_deleted(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    new_group: Callable[[], str],
) -> None:
    topic, group = new_topic(), new_group()
    on_group = (*server, "--group", group)
    confluent.produce(bootstrap, topic, numbered_records(10), Sending())
    tools.check(
        *("console-consumer", *on_group, "--topic", topic, "--from-beginning"),
        *("--max-messages", "10", "--timeout-ms", "20000"),
    )
    confluent.produce(bootstrap, topic, numbered_records(3), Sending())

    assert group in tools.check("consumer-groups", "--list", *server).lines
    (row,) = table(tools.check("consumer-groups", "--describe", *on_group))
    wanted = {"TOPIC": topic, "CURRENT-OFFSET": "10", "LOG-END-OFFSET": "13", "LAG": "3"}
    assert wanted.items() <= row.items()
    state = tools.check("consumer-groups", "--describe", "--state", *on_group)
    assert " Empty " in state.lines[-1]

    reset = (*on_group, "--topic", topic, "--reset-offsets")
    planned = tools.check("consumer-groups", *reset, "--to-offset", "4", "--dry-run")
    assert planned.output.split()[-4:] == [group, topic, "0", "4"]
    (row,) = table(tools.check("consumer-groups", "--describe", *on_group))
    assert row["CURRENT-OFFSET"] == "10"
    tools.check("consumer-groups", *reset, "--shift-by", "-6", "--execute")
    (row,) = table(tools.check("consumer-groups", "--describe", *on_group))
    assert (row["CURRENT-OFFSET"], row["LAG"]) == ("4", "9")
    at = datetime.fromtimestamp((BASE_TIMESTAMP_MS + 7) / 1000, UTC).isoformat("T", "milliseconds")
    tools.check("consumer-groups", *reset, "--to-datetime", at.removesuffix("+00:00"), "--execute")
    (row,) = table(tools.check("consumer-groups", "--describe", *on_group))
    assert row["CURRENT-OFFSET"] == "7"

    deleted = tools.check("consumer-groups", "--delete", *on_group)
    described = tools.run("consumer-groups", "--describe", *on_group)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in deleted.output
    assert group not in tools.check("consumer-groups", "--list", *server).lines
    said = described.output + described.errors
    assert "does not exist" in said or "not found" in said


def test_streams_application_is_reset(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    new_name: NewName,
) -> None:
    topic, application = new_topic(), new_name("application")
    internal = f"{application}-counts-changelog"
    tools.check("topics", *server, "--create", "--topic", internal, "--partitions", "1")
    confluent.produce(bootstrap, topic, numbered_records(3), Sending())
    on_group = (*server, "--group", application)
    tools.check(
        *("console-consumer", *on_group, "--topic", topic, "--from-beginning"),
        *("--max-messages", "3", "--timeout-ms", "20000"),
    )

    tools.check(
        *("streams-application-reset", *server, "--application-id", application),
        *("--input-topics", topic, "--to-offset", "1"),
    )

    (row,) = table(tools.check("consumer-groups", "--describe", *on_group))
    assert (row["TOPIC"], row["CURRENT-OFFSET"]) == (topic, "1")
    assert internal not in tools.check("topics", *server, "--list").lines


def test_offsets_of_one_topic_are_deleted(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    new_group: Callable[[], str],
) -> None:
    topics, group = [new_topic(), new_topic()], new_group()
    on_group = (*server, "--group", group)
    for topic in topics:
        confluent.produce(bootstrap, topic, numbered_records(2), Sending())
        tools.check(
            *("console-consumer", *on_group, "--topic", topic, "--from-beginning"),
            *("--max-messages", "2", "--timeout-ms", "20000"),
        )

    tools.check("consumer-groups", "--delete-offsets", *on_group, "--topic", topics[0])

    rows = table(tools.check("consumer-groups", "--describe", *on_group))
    assert [(row["TOPIC"], row["CURRENT-OFFSET"]) for row in rows] == [(topics[1], "2")]
