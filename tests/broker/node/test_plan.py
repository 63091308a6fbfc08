"""A node's file resolved to brokers, given the existing directories."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from broker.node.plan import read_plan
from config.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "node.properties"
    path.write_text(
        f"broker.processes=2\nbroker.id=4\nlog.dirs={tmp_path}/logs\nzookeeper.connect=z:1\nodd=1\n"
    )
    return str(path)


def log_directory(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "meta.properties").write_text("version=0\n")
    return path


def test_each_broker_is_started_with_the_nodes_own_words(path: str, tmp_path: Path) -> None:
    plan = read_plan(path, ["num.partitions=3"], "DEBUG")
    assert [member.broker_id for member in plan.members] == [4, 5]
    assert plan.members[1].command == (
        *(sys.executable, "-P", "-m", "broker", "--config", path, "--process", "1"),
        *("--log-level", "DEBUG", "--override", "num.partitions=3"),
    )
    assert plan.members[1].lock == f"{tmp_path}/logs/node/broker5.lock"
    assert plan.members[1].socket == f"{tmp_path}/logs/node/broker5.sock"
    assert plan.lock == f"{tmp_path}/logs/node/node.lock"


def test_an_unknown_key_causes_one_warning(path: str) -> None:
    assert read_plan(path, []).warnings == (f"{path}:5: odd is not a configuration key",)


def test_an_invalid_value_is_reported_once_for_all_brokers(path: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read_plan(path, ["num.partitions=0"])
    assert str(refusal.value).splitlines()[1:] == [
        "--override: Invalid value 0 for configuration num.partitions: Value must be at least 1"
    ]
    with pytest.raises(ConfigError) as refusal:
        read_plan(
            path, ["broker.process.0.num.partitions=0", "broker.process.1.log.segment.bytes=1"]
        )
    assert [line.partition(": ")[2] for line in str(refusal.value).splitlines()] == [
        "warning: odd is not a configuration key",
        "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        "Invalid value 1 for configuration log.segment.bytes: Value must be at least 14",
    ]


def test_the_log_directory_of_a_former_single_broker_is_not_ignored(
    path: str, tmp_path: Path
) -> None:
    log_directory(tmp_path / "logs")
    with pytest.raises(ConfigError) as refusal:
        read_plan(path, [])
    assert f"move what is in it to {tmp_path}/logs/broker4, or name it in" in str(refusal.value)
    own = [
        f"broker.process.0.log.dirs={tmp_path}/logs",
        f"broker.process.1.log.dirs={tmp_path}/more",
        f"broker.processes.directory={tmp_path}/node",
    ]
    assert read_plan(path, own).members[0].config.log_dirs == (f"{tmp_path}/logs",)


def test_log_directories_of_brokers_missing_from_the_file_are_warned_of(
    path: str, tmp_path: Path
) -> None:
    left = log_directory(tmp_path / "logs" / "broker6")
    log_directory(tmp_path / "logs" / "broker5")
    (tmp_path / "logs" / "broker7").mkdir()
    assert read_plan(path, []).warnings[1:] == (
        f"{left}: this broker is not in the file; its logs are left alone",
    )
