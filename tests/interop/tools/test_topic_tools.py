"""kafka-topics, kafka-configs, kafka-get-offsets, kafka-log-dirs and kafka-delete-records."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients import confluent
from tests.interop.clients.record import BASE_TIMESTAMP_MS, Sending, numbered_records
from tests.interop.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.conftest import NewName, NewTopicFunction
    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.tools import Outcome, Tools


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return ("--bootstrap-server", bootstrap)


def partition_lines(described: Outcome) -> list[dict[str, str]]:
    """Return what `--describe` says of each partition, by heading."""
    found = [line for line in described.lines if "\tPartition: " in line]
    return [dict(re.findall(r"(\w+): ([^\t]*)", line)) for line in found]


def test_topic_is_created_described_listed_altered_and_deleted(
    tools: Tools, server: tuple[str, str], new_name: NewName
) -> None:
    topic = new_name("tool-topic")
    on_topic = (*server, "--topic", topic)

    created = tools.check(
        "topics", "--create", *on_topic, "--partitions", "3", "--config", "retention.ms=1000000"
    )
    assert created.lines == [f"Created topic {topic}."]

    eventually(lambda: tools.run("topics", "--describe", *on_topic).exit_code == 0)
    described = tools.check("topics", "--describe", *on_topic)
    assert re.search(r"TopicId: [\w-]{22}\t", described.output)
    assert "PartitionCount: 3\tReplicationFactor: 1" in described.output
    assert "retention.ms=1000000" in described.lines[0]
    lines = partition_lines(described)
    assert [line["Partition"] for line in lines] == ["0", "1", "2"]
    assert {(line["Leader"], line["Replicas"], line["Isr"]) for line in lines} == {("0", "0", "0")}

    eventually(lambda: topic in tools.check("topics", "--list", *server).lines)

    tools.check("topics", "--alter", *on_topic, "--partitions", "5")
    eventually(lambda: len(partition_lines(tools.check("topics", "--describe", *on_topic))) == 5)

    tools.check("topics", "--delete", *on_topic)
    eventually(lambda: topic not in tools.check("topics", "--list", *server).lines)
    gone = tools.run("topics", "--describe", *on_topic)
    assert gone.exit_code == 1
    assert "does not exist as expected" in gone.output


def test_topic_mistakes_are_refused_in_kafkas_words(
    tools: Tools, server: tuple[str, str], new_topic: NewTopicFunction
) -> None:
    topic = new_topic(partitions=2)

    again = tools.run("topics", "--create", *server, "--topic", topic)
    fewer = tools.run("topics", "--alter", *server, "--topic", topic, "--partitions", "1")
    replicated = tools.run(
        *("topics", "--create", *server, "--topic", "too-many-replicas"),
        *("--replication-factor", "3", "--partitions", "1"),
    )
    misspelt = tools.run(
        "topics", "--create", *server, "--topic", "bad-config", "--config", "retention.ms=soon"
    )

    assert (again.exit_code, fewer.exit_code) == (1, 1)
    assert f"Topic '{topic}' already exists." in again.output
    assert re.search(r"currently has 2 partition", fewer.output)
    assert replicated.exit_code == 1
    assert re.search(r"[Rr]eplication factor", replicated.output)
    assert misspelt.exit_code == 1
    assert "retention.ms" in misspelt.output + misspelt.errors


def test_topic_config_is_added_described_and_deleted(
    tools: Tools, server: tuple[str, str], new_topic: NewTopicFunction
) -> None:
    entity = (*server, "--entity-type", "topics", "--entity-name", new_topic())

    tools.check(
        "configs",
        "--alter",
        *entity,
        "--add-config",
        "retention.ms=5000,cleanup.policy=[compact,delete]",
    )
    eventually(lambda: len(tools.check("configs", "--describe", *entity).lines) == 3)
    described = tools.check("configs", "--describe", *entity)
    rows = [line.split(" ")[2] for line in described.lines[1:]]
    assert sorted(rows) == ["cleanup.policy=compact,delete", "retention.ms=5000"]
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=5000" in described.output

    tools.check("configs", "--alter", *entity, "--delete-config", "retention.ms,cleanup.policy")
    eventually(lambda: len(tools.check("configs", "--describe", *entity).lines) == 1)

    everything = tools.check("configs", "--describe", "--all", *entity)
    values = {line.split(" ")[2] for line in everything.lines[1:]}
    assert {
        "retention.ms=604800000",
        "cleanup.policy=delete",
        "max.message.bytes=1048588",
    } <= values

    wrong = tools.run("configs", "--alter", *entity, "--add-config", "retention.ms=soon")
    assert wrong.exit_code == 1
    assert "retention.ms" in wrong.output + wrong.errors


def test_offsets_and_their_deletion(
    tools: Tools,
    server: tuple[str, str],
    bootstrap: str,
    new_topic: NewTopicFunction,
    tmp_path: Path,
) -> None:
    topic = new_topic(partitions=2)
    on_topic = (*server, "--topic", topic)
    confluent.produce(bootstrap, topic, numbered_records(9, partition=1), Sending())

    def offsets(time: str) -> list[str]:
        return tools.check("get-offsets", *on_topic, "--time", time).lines

    assert offsets("-1") == [f"{topic}:0:0", f"{topic}:1:9"]
    assert offsets("-2") == [f"{topic}:0:0", f"{topic}:1:0"]
    assert offsets("-3") == [f"{topic}:1:8"]
    assert offsets(str(BASE_TIMESTAMP_MS + 4)) == [f"{topic}:1:4"]

    wanted = [{"topic": topic, "partition": 1, "offset": 5}]
    file = tmp_path / "delete.json"
    file.write_text(json.dumps({"partitions": wanted, "version": 1}))
    deleted = tools.check("delete-records", *server, "--offset-json-file", str(file))
    assert f"partition: {topic}-1\tlow_watermark: 5" in deleted.output
    assert offsets("-2") == [f"{topic}:0:0", f"{topic}:1:5"]

    file.write_text(json.dumps({"partitions": [{**wanted[0], "offset": 10}], "version": 1}))
    beyond = tools.run("delete-records", *server, "--offset-json-file", str(file))
    assert "OffsetOutOfRangeException" in beyond.output


def test_log_directories_show_sizes(
    tools: Tools, broker: BrokerProcess, server: tuple[str, str], new_topic: NewTopicFunction
) -> None:
    topic = new_topic(partitions=2)
    confluent.produce(broker.bootstrap, topic, numbered_records(5), Sending())

    said = tools.check("log-dirs", "--describe", *server, "--topic-list", topic)

    report = json.loads(next(line for line in said.lines if line.startswith("{")))
    assert [entry["broker"] for entry in report["brokers"]] == [0]
    (directory,) = report["brokers"][0]["logDirs"]
    assert directory["error"] is None
    assert directory["logDir"] == str(broker.data_directory)
    sizes = {entry["partition"]: entry["size"] for entry in directory["partitions"]}
    on_disk = broker.data_directory / f"{topic}-0" / f"{0:020}.log"
    assert sizes == {f"{topic}-0": on_disk.stat().st_size, f"{topic}-1": 0}


def test_kafka_broker_api_versions_lists_usable_versions(
    tools: Tools, server: tuple[str, str]
) -> None:
    said = tools.check("broker-api-versions", *server)

    usable = dict(re.findall(r"(\w+)\(\d+\): [\d to ]+\[usable: (\d+)\]", said.output))
    assert {"Produce", "Fetch", "Metadata", "JoinGroup", "InitProducerId"} <= set(usable)
    assert int(usable["Produce"]) >= 9
    assert int(usable["Fetch"]) >= 12
