"""Property files of nodes, where the cases of `cases.toml` do not reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.storage.node import read_node
from config.errors import ConfigError
from tests.support.storage_tool.cases import BASES

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: Path, base: str, **more: str) -> str:
    path = directory / "server.properties"
    keys = {**BASES[base], **{key.replace("_", "."): value for key, value in more.items()}}
    text = "".join(f"{key}={value}\n" for key, value in keys.items())
    path.write_text(text.replace("{root}", str(directory)))
    return str(path)


def test_directories_are_each_there_once_and_in_order(tmp_path: Path) -> None:
    node = read_node(write(tmp_path, "static", log_dirs="/b,/a,/b", metadata_log_dir="/c"), {})

    assert (node.log_dirs, node.metadata_log_dir) == (("/a", "/b", "/c"), "/c")


def test_metadata_log_is_in_the_first_directory_unless_stated(tmp_path: Path) -> None:
    for more in ({}, {"metadata_log_dir": ""}):
        node = read_node(write(tmp_path, "static", log_dirs="/b,/a", **more), {})
        assert (node.log_dirs, node.metadata_log_dir) == (("/a", "/b"), "/b")


def test_values_may_be_in_the_environment(tmp_path: Path) -> None:
    kind = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    provider = {"config_providers": "env", "config_providers_env_class": kind}
    path = write(tmp_path, "controller", node_id="${env:NODE}", **provider)

    assert read_node(path, {"NODE": "7"}).node_id == 7


def test_address_is_that_of_controllers_alone(tmp_path: Path) -> None:
    controller = read_node(write(tmp_path, "controller"), {})
    broker = read_node(write(tmp_path, "broker"), {})

    assert controller.controller_address == ("127.0.0.1", 9093)
    assert broker.controller_address is None
    assert (controller.is_controller, broker.is_controller) == (True, False)
    assert read_node(write(tmp_path, "static"), {}).has_static_voters


def test_refusal_names_the_line_of_a_malformed_file(tmp_path: Path) -> None:
    path = write(tmp_path, "static", client_rack="\\u00zz")

    with pytest.raises(ConfigError, match=r"server\.properties:8: "):
        read_node(path, {})
