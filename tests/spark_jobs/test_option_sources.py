"""Options from the environment and from a file, and which of them counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import BadOptionError
from spark_jobs.jobs.produce_flights import ProduceOptions
from spark_jobs.options import SparkOptions, parse_options

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
bootstrap_servers = "file:1"
shuffle_partitions = 3
months = [1, 2]
[kafka]
"security.protocol" = "SSL"
[job]
shuffle_partitions = 4
[other]
anything = true
"""


def _file(tmp_path: Path, text: str = FILE) -> str:
    path = tmp_path / "options.toml"
    path.write_text(text)
    return str(path)


def test_flags_count_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["--options-file", _file(tmp_path)]
    options = parse_options(SparkOptions, argv, "job", "A job.")
    assert (options.bootstrap_servers, options.shuffle_partitions) == ("file:1", 4)
    assert options.kafka == {"security.protocol": "SSL"}
    monkeypatch.setenv("SPARK_JOBS_BOOTSTRAP_SERVERS", "environment:1")
    monkeypatch.setenv("SPARK_JOBS_KAFKA", '{"acks": "all"}')
    options = parse_options(SparkOptions, argv, "job", "A job.")
    assert (options.bootstrap_servers, options.shuffle_partitions) == ("environment:1", 4)
    assert options.kafka == {"acks": "all"}
    argv += ["--bootstrap-servers", "flag:1"]
    assert parse_options(SparkOptions, argv, "job", "A job.").bootstrap_servers == "flag:1"


def test_the_environment_may_name_the_file_and_give_several_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_JOBS_OPTIONS_FILE", _file(tmp_path))
    assert parse_options(ProduceOptions, [], "job2", "J.").months == (1, 2)
    monkeypatch.setenv("SPARK_JOBS_MONTHS", "3,4")
    assert parse_options(ProduceOptions, [], "job2", "J.").months == (3, 4)


@pytest.mark.parametrize(
    ("changed", "to", "message"),
    [
        ("shuffle_partitions = 4", "shuffle = 4", r"options.toml: \[job\] shuffle: job has no"),
        ("partitions = 4", "partitions = 0", r"options.toml: \[job\] shuffle_partitions: Input"),
        ('"file:1"', '"file"', r"options.toml: bootstrap_servers: expected HOST:PORT"),
        ("[job]", "[job", "--options-file: .*options.toml: not TOML: "),
        ("[job]", "[[job]]", r"options.toml: job: expected the table \[job\], got '\[{"),
    ],
)
def test_a_mistake_in_the_file_is_named(
    changed: str, to: str, message: str, tmp_path: Path
) -> None:
    argv = ["--options-file", _file(tmp_path, FILE.replace(changed, to))]
    with pytest.raises(BadOptionError, match=message):
        parse_options(SparkOptions, argv, "job", "A job.")


def test_a_value_in_the_place_of_the_jobs_table_is_named(tmp_path: Path) -> None:
    argv = ["--options-file", _file(tmp_path, "job = 3")]
    with pytest.raises(BadOptionError, match=r"options.toml: job: expected the table \[job\], got"):
        parse_options(SparkOptions, argv, "job", "A job.")


def test_a_mistake_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_JOBS_KAFKA", "acks=all")
    with pytest.raises(BadOptionError, match=r"^SPARK_JOBS_KAFKA: expected a JSON object, got"):
        parse_options(SparkOptions, [], "job", "A job.")
    monkeypatch.setenv("SPARK_JOBS_KAFKA", "{}")
    monkeypatch.setenv("SPARK_JOBS_SHUFFLE_PARTITIONS", "none")
    with pytest.raises(BadOptionError, match=r"^SPARK_JOBS_SHUFFLE_PARTITIONS: Input should be"):
        parse_options(SparkOptions, [], "job", "A job.")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    argv = ["--options-file", str(tmp_path / "none.toml")]
    with pytest.raises(BadOptionError, match=r"none\.toml cannot be read: no such file"):
        parse_options(SparkOptions, argv, "job", "A job.")
