"""Our broker as a process: `python -m broker` with a configuration of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.brokers.apache import STANDALONE
from tests.support.brokers.broker_process import BrokerProcess, free_port, write_properties
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path


def ours(
    directory: Path,
    properties: dict[str, str] | None = None,
    *,
    data_directory: Path | None = None,
    port: int | None = None,
) -> BrokerProcess:
    """Return our broker, not yet started; `data_directory` is one that exists already."""
    port = port or free_port()
    broker = BrokerProcess(name="ours", command=[], directory=directory, port=port)
    config = write_properties(
        directory / "server.properties",
        {
            "broker.id": "0",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(data_directory or broker.data_directory),
            **STANDALONE,
            **(properties or {}),
        },
    )
    broker.command = [sys.executable, "-m", "broker", "--config", str(config)]
    broker.working_directory = REPOSITORY
    return broker
