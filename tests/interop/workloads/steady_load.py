"""Producers of two kinds that send numbered records at a steady rate: acks=all, idempotent.

Values are `name:number`; number n goes to partition n modulo the topic's, so order can be checked.
"""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Producer

from tests.support import class_archives, jars
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.tools import FLAGS

TURN_SECONDS = 0.02
FINISH_SECONDS = 400.0
DELIVERY_MS = 120_000
JAVA = Path(__file__).parents[1] / "java" / "SteadyLoad.java"

Placed = tuple[int, int, bytes]
"""Partition, offset (-1 if unacknowledged) and value."""


class Target(NamedTuple):
    """Topic written to, and the rate."""

    topic: str
    partitions: int
    rate: int
    """Records a second."""


class Load(Protocol):
    """A producer at work from `start` to `finish`."""

    name: str
    acknowledged: list[Placed]
    failures: list[str]

    def start(self) -> None:
        """Begin."""

    def finish(self) -> None:
        """Send no more; wait until everything is acknowledged, or has failed."""

    def stop(self) -> None:
        """End, despite work under way; it may have been finished."""


class ConfluentLoad:
    """librdkafka."""

    def __init__(self, name: str, bootstrap: str, target: Target) -> None:
        self.name = name
        self.acknowledged: list[Placed] = []
        self.failures: list[str] = []
        self._target = target
        self._per_turn = max(1, int(target.rate * TURN_SECONDS))
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "message.timeout.ms": DELIVERY_MS,
                "socket.timeout.ms": 5000,
                "reconnect.backoff.max.ms": 200,
                "compression.type": "lz4",
                "log_level": 0,
            }
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Send no more; wait until everything is acknowledged, or has failed."""
        self._is_stopped.set()
        self._thread.join()

    def stop(self) -> None:
        """End, despite work under way; it may have been finished."""
        self._is_stopped.set()
        self._producer.purge()

    def _run(self) -> None:
        number = 0
        while not self._is_stopped.is_set():
            for _ in range(self._per_turn):
                self._send(number)
                number += 1
            self._producer.poll(0)
            time.sleep(TURN_SECONDS)
        if left := self._producer.flush(FINISH_SECONDS):
            self.failures.append(f"{left} records are still not acknowledged")

    def _send(self, number: int) -> None:
        value = b"%s:%08d" % (self.name.encode(), number)
        partition = number % self._target.partitions
        self._producer.produce(
            self._target.topic, value, partition=partition, on_delivery=self._delivered
        )

    def _delivered(self, error: object, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        offset = message.offset()
        self.acknowledged.append(
            (message.partition(), -1 if offset is None else offset, message.value())
        )


class JavaLoad:
    """kafka-clients, in a JVM of its own."""

    def __init__(self, name: str, bootstrap: str, target: Target) -> None:
        self.name = name
        self.acknowledged: list[Placed] = []
        self.failures: list[str] = []
        classes = jars.compiled(jars.KAFKA_4, JAVA)
        classpath = f"{jars.classpath(jars.KAFKA_4)}:{classes}"
        flags = (*FLAGS, *class_archives.flags(jars.KAFKA_4))
        java = [*DIES_WITH_PARENT, jars.java_home_tool("java"), *flags, "-cp", classpath]
        what = (target.topic, str(target.partitions), name, str(target.rate))
        self._command = [*java, "SteadyLoad", bootstrap, *what]
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._thread.start()

    def finish(self) -> None:
        """Send no more; wait until everything is acknowledged, or has failed."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(FINISH_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join()

    def stop(self) -> None:
        """End, despite work under way; it may have been finished."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        is_done = False
        with self._process.stdout as lines:
            for line in lines:
                words = line.split()
                if words[0] == b"done":
                    is_done = True
                elif words[0] == b"failed":
                    self.failures.append(line.decode())
                else:
                    self.acknowledged.append((int(words[0]), int(words[1]), words[2]))
        if not is_done:
            self.failures.append(f"{self.name} ended early")
