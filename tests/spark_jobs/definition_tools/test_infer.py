"""A definition written from a topic: the command, by a broker."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from spark_jobs.definition_tools.check import main as check_main
from spark_jobs.definition_tools.infer import InferOptions, main, sample
from spark_jobs.errors import EXIT_FAILED
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def test_a_definition_is_written_from_a_topic(
    servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic, path = new_name("inferred"), tmp_path / "inferred.toml"
    create_topic(servers, topic, partitions=3)
    records = [Record(None, b'{"id": %d, "tags": ["a"]}' % at, at % 3) for at in range(30)]
    produce_records(servers, topic, records)
    options = InferOptions(bootstrap_servers=servers, topic=topic, records=6)
    found = sorted(value or b"" for _, value in sample(options))
    assert found == sorted(record.value or b"" for record in records[-6:])
    assert main([topic, "--bootstrap-servers", servers, "--output", str(path)]) == 0
    assert check_main([str(path)]) == 0
    fields = tomllib.loads(path.read_text(encoding="utf-8"))["record"]["fields"]
    assert fields == {
        "id": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "text"}},
    }


def test_a_topic_without_objects_is_named(
    servers: str, new_name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    empty, texts = new_name("empty"), new_name("texts")
    create_topic(servers, empty)
    create_topic(servers, texts)
    produce_records(servers, texts, [Record(None, b"no JSON")])
    for topic, words in (
        (empty, "has no records to look at"),
        (texts, "of 1 records none is a JSON object"),
        ("nowhere", "topic 'nowhere' is not there"),
    ):
        assert main([topic, "--bootstrap-servers", servers]) == EXIT_FAILED
        assert words in capsys.readouterr().err
