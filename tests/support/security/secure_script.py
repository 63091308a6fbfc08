"""A broker with the files that scripts/secure.py writes."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.brokers.broker_process import (
    START_TIMEOUT_SECONDS,
    BrokerError,
    BrokerProcess,
    free_port,
)
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCRIPT = REPOSITORY / "scripts" / "secure.py"
SCRIPT_SECONDS = 120.0


class ScriptedBroker(NamedTuple):
    """A running broker, and the files of its clients."""

    bootstrap: str
    files: Path

    def librdkafka(self, user: str) -> dict[str, str]:
        """A user's settings, read as docs/security.md does it."""
        lines = (self.files / f"{user}.librdkafka").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@contextmanager
def secured_by_script(directory: Path) -> Iterator[ScriptedBroker]:
    """Run the script for a port that is free, and a broker with what it wrote."""
    port = free_port()
    command = [sys.executable, str(SCRIPT), str(directory), "--port", str(port)]
    subprocess.run(command, check=True, capture_output=True, timeout=SCRIPT_SECONDS)
    start = [sys.executable, "-m", "broker", "--config", str(directory / "server.properties")]
    override = ["--override", f"log.dirs={directory}/data"]
    process = BrokerProcess("secured", [*start, *override], directory, port)
    process.working_directory = REPOSITORY
    broker = ScriptedBroker(f"localhost:{port}", directory)
    process.launch()
    try:
        _wait_until_serving(broker, process)
        yield broker
        process.stop()
    finally:
        process.kill()


def _wait_until_serving(broker: ScriptedBroker, process: BrokerProcess) -> None:
    admin = AdminClient({**broker.librdkafka("admin"), "log_level": 0})
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            if time.monotonic() > deadline or not process.is_running():
                raise BrokerError(f"it does not serve:\n{process.output_tail()}") from None
        else:
            return
