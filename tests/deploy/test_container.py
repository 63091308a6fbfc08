"""Checks of the Containerfile without a container."""

from __future__ import annotations

import json
import re
from pathlib import Path

from config.listeners.endpoints import read_listeners
from config.loader import load_broker_config

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "container"
TEXT = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def _instructions(name: str) -> list[str]:
    return re.findall(rf"^\s*{name} +(.*)$", TEXT, re.MULTILINE)


def test_files_copied_into_the_image_exist() -> None:
    copied = [line.split() for line in _instructions("COPY") if not line.startswith("--from")]
    assert [(ROOT / source).exists() for *sources, _ in copied for source in sources] == [True] * 2
    ignored = (ROOT / ".dockerignore").read_text().split()
    needed = {"pyproject.toml", "README.md", "LICENSE", "scripts", "requirements", "broker"}
    assert needed.isdisjoint(ignored)


def test_the_image_runs_unprivileged_with_its_data_in_a_volume() -> None:
    (user,) = _instructions("USER")
    assert int(user) > 0
    (volume,) = _instructions("VOLUME")
    config, warnings = load_broker_config(FOLDER / "server.properties")
    assert warnings == []
    assert all(path.startswith(f"{volume}/") for path in config.log_dirs)


def test_entrypoint_and_healthcheck_use_the_images_property_file() -> None:
    (entry,) = _instructions("ENTRYPOINT")
    (check,) = re.findall(r"^HEALTHCHECK .* CMD (.*)$", TEXT, re.MULTILINE)
    (target,) = [line.split()[-1] for line in _instructions("COPY") if "server.properties" in line]
    assert json.loads(entry) == ["kafka-broker-python", "--config", target]
    assert json.loads(check) == ["kafka-broker-python", "health", "--config", target]


def test_the_exposed_port_is_that_of_the_listener() -> None:
    config, _ = load_broker_config(FOLDER / "server.properties")
    (port,) = _instructions("EXPOSE")
    assert [endpoint.port for endpoint in read_listeners(config).bound] == [int(port)]
