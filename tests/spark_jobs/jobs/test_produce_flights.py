"""Producing: every record delivered once, however often and however interrupted it runs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from spark_jobs.errors import EXIT_FAILED, JobError
from spark_jobs.jobs.produce_flights import ProduceOptions, main, partition_of, produce
from spark_jobs.kafka.feed_position import REPLAYED_HEADER, TIMEOUT_SECONDS, line_header
from spark_jobs.pipeline.local_broker import _free_port
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import DAMAGED, FEED, MONTH, month_of_flights
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from spark_jobs.jobs.produce_flights import Outcome


def _options(servers: str, topic: str) -> ProduceOptions:
    return ProduceOptions(
        bootstrap_servers=servers, topic=topic, partitions=2, months=(MONTH,), damaged=DAMAGED
    )


def test_every_line_is_sent_and_acknowledged(produced: Outcome) -> None:
    assert produced.lines == len(month_of_flights()) + DAMAGED
    assert produced.sent == produced.acknowledged == produced.lines
    assert produced.damaged == DAMAGED


def test_the_topic_holds_the_feed(servers: str, produced: Outcome) -> None:
    records = read_topic(servers, TOPIC)
    lines = {line_header(FEED, line.number): line for line in FEED.lines(FEED.flights())}
    assert len(records) == produced.lines
    assert {record.headers["line"] for record in records} == set(lines)
    for record in records:
        line = lines[record.headers["line"]]
        assert (record.key, record.value, record.timestamp_ms) == (
            line.key,
            line.value,
            line.timestamp_ms,
        )
        assert record.partition == partition_of(line.key, 3)


@pytest.mark.usefixtures("produced")
def test_lines_of_a_partition_are_in_order(servers: str) -> None:
    records = sorted(read_topic(servers, TOPIC))
    numbers = [(r.partition, int(r.headers["line"].rpartition(b"/")[2])) for r in records]
    assert all(a < b for a, b in pairwise(numbers))


@pytest.mark.usefixtures("produced")
def test_running_again_adds_nothing(servers: str) -> None:
    before = len(read_topic(servers, TOPIC))
    again = produce(_options(servers, TOPIC))
    assert (again.sent, again.already_there) == (0, again.lines)
    assert len(read_topic(servers, TOPIC)) == before


def test_an_interrupted_run_is_completed(
    servers: str, new_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_name("interrupted")
    options = _options(servers, topic)
    lines = type(FEED).lines

    def interrupted(feed: object, flights: object) -> object:
        for line in lines(feed, flights):  # type: ignore[arg-type]
            if line.number == 10_000:
                raise KeyboardInterrupt
            yield line

    with monkeypatch.context() as patch:
        patch.setattr(type(FEED), "lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            produce(options)
    held = len(read_topic(servers, topic))
    completed = produce(options)
    assert completed.already_there == held
    numbers = [record.headers["line"] for record in read_topic(servers, topic)]
    assert len(numbers) == len(set(numbers)) == completed.lines


@pytest.mark.usefixtures("produced")
def test_a_topic_of_another_feed_is_left_alone(servers: str) -> None:
    other = ProduceOptions(bootstrap_servers=servers, topic=TOPIC, months=(1,))
    with pytest.raises(JobError, match="topic 'march' holds records of another feed"):
        produce(other)


def test_a_topic_that_was_grown_is_left_alone(servers: str, new_name: Callable[[str], str]) -> None:
    topic = new_name("grown")
    options = _options(servers, topic)
    before = produce(options).lines
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result()
    words = f"topic '{topic}' was grown from 2 to 4 partitions, .*: name another with --topic"
    with pytest.raises(JobError, match=words):
        produce(options)
    assert len(read_topic(servers, topic)) == before


def test_what_a_replay_left_behind_the_lines_is_passed_over(
    servers: str, new_name: Callable[[str], str]
) -> None:
    topic = new_name("replayed")
    options = _options(servers, topic)
    lines = produce(options).lines
    replaying = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    replaying.init_transactions(TIMEOUT_SECONDS)
    for record in (b"once more", b"and again"):
        replaying.begin_transaction()
        replaying.produce(topic, record, partition=0, headers={REPLAYED_HEADER: b"dead/0/1"})
        replaying.commit_transaction(TIMEOUT_SECONDS)
    again = produce(options)
    assert (again.sent, again.already_there) == (0, lines)


def test_a_setting_that_is_none_is_told_as_that(
    servers: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--bootstrap-servers", servers, "--client", "no.such=1"]) == EXIT_FAILED
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith('error: No such configuration property: "no.such": --client ')


def test_a_wrong_port_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    server = f"127.0.0.1:{_free_port()}"
    assert main(["--bootstrap-servers", server]) == EXIT_FAILED
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"error: no broker listens at {server}: connection refused")


def test_a_topic_that_refuses_records_is_one_line(
    servers: str, new_name: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    topic = new_name("narrow")
    narrow = NewTopic(topic, num_partitions=1, config={"max.message.bytes": "100"})
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    admin.create_topics([narrow])[topic].result()
    assert main(["--bootstrap-servers", servers, "--months", "2", "--topic", topic]) == EXIT_FAILED
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "Broker: Message size too large" in line
