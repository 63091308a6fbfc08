"""A registry as a process: `python -m spark_jobs registry`, killed and started again."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.brokers.broker_process import free_port
from tests.support.jars import REPOSITORY
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

START_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the registry said to a request."""

    status: int
    content_type: str
    body: Any


class RegistryProcess:
    """A registry on a port of its own, whether it runs or not."""

    def __init__(self, bootstrap: str, directory: Path, *arguments: str) -> None:
        self.port = free_port()
        self.output = directory / f"registry-{self.port}.out"
        job = (sys.executable, "-m", "spark_jobs", "registry")
        where = ("--bootstrap-servers", bootstrap, "--port", str(self.port))
        self._command = [*DIES_WITH_PARENT, *job, *where, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What clients take."""
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=output, cwd=REPOSITORY
            )
        assert wait_until(self._answers, START_SECONDS, 0.05), self.output.read_text()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.output.read_text()
        with suppress(OSError):
            return self.ask("GET", "/").status == 200
        return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal, and return its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        code = self._process.wait(START_SECONDS)
        self._process = None
        return code

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request; a body is JSON, unless it is bytes."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        try:
            raw = body if body is None or isinstance(body, bytes) else json.dumps(body)
            kind = {"content-type": "application/vnd.schemaregistry.v1+json"} if raw else {}
            given = {key.replace("_", "-"): value for key, value in headers.items()}
            connection.request(method, path, raw, kind | given)
            answer = connection.getresponse()
            content = json.loads(answer.read())
            return Answer(answer.status, answer.getheader("content-type", ""), content)
        finally:
            connection.close()
