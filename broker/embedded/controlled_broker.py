"""One broker as a test sees it, whether it is alone or one of several."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from typing import TYPE_CHECKING, Self

from broker.embedded.machine.turned_time import time_span
from broker.embedded.mischief import FaultyRequests
from broker.embedded.requests_view import Requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from broker.embedded.engines.engine import Engine
    from broker.embedded.security import Security
    from broker.embedded.settings import BrokerSettings


class ControlledBroker(FaultyRequests):
    """A broker's controls for a test; its subclasses start it.

    Its methods may be called from any thread, and block it.
    """

    @property
    @abstractmethod
    def _settings(self) -> BrokerSettings:
        """Its settings. Raises EmbeddedBrokerError if it was never started."""

    @abstractmethod
    def start(self) -> Self:
        """Start it, or start it again after `kill`; returns when it serves."""

    def kill(self) -> None:
        """End it as SIGKILL does. Its logs and its port wait for `start`."""
        self._engine.kill()

    def restart(self) -> None:
        """Stop it in order, and start it with the same logs at the same port."""
        if self.is_running:
            self._engine.ask("stop")
        self._engine.ask("start")

    def pause(self) -> None:
        """Have it do nothing, as SIGSTOP does: connections stay open, and nothing is answered."""
        self._engine.pause()

    def resume(self) -> None:
        """Have it go on after `pause`."""
        self._engine.resume()

    def restore(self) -> None:
        """Clear all faults: resume or start the broker, remove request faults, free its disk."""
        self.resume()
        self._engine.ask("restore")

    @property
    def is_paused(self) -> bool:
        """True if it was paused, and not resumed."""
        return self._engine.is_paused

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """`pause`, and `resume` in the end."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    @contextlib.contextmanager
    def killed(self) -> Iterator[None]:
        """`kill`, and `start` in the end."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap server for clients, `host:port`."""
        return self._settings.bootstrap_server

    def get_bootstrap_server(self) -> str:
        """As testcontainers call it."""
        return self.bootstrap_servers

    @property
    def client_config(self) -> dict[str, str]:
        """Configuration for a client of librdkafka (confluent-kafka)."""
        return self._settings.client_config

    @property
    def kafka_python_config(self) -> dict[str, str]:
        """Constructor arguments for a client of kafka-python."""
        return self._settings.kafka_python_config

    @property
    def security(self) -> Security | None:
        """Protocol, certificate, user and password for clients; None if anyone may connect."""
        return self._settings.security

    @property
    def config(self) -> dict[str, str]:
        """Its configuration: the keys of its property file."""
        return self._settings.properties

    @property
    def log_dir(self) -> Path:
        """Directory of its logs."""
        return self._settings.logs

    @property
    def is_running(self) -> bool:
        """True if it was started, and neither stopped nor killed, nor ended by a failure."""
        return bool(self._engine.ask("is_running"))

    @property
    def failure(self) -> str | None:
        """Reason why it ended by itself, if it did: a failure of its last disk, say."""
        why: str | None = self._engine.ask("failure")
        return why

    @property
    def log_lines(self) -> list[str]:
        """The newest 2,000 lines of its log."""
        lines: list[str] = self._engine.ask("log_lines")
        return lines

    @property
    def requests(self) -> Requests:
        """Requests that clients have sent."""
        return Requests(self._engine)

    def topics(self) -> dict[str, int]:
        """The number of partitions of each topic, internal ones too."""
        found: dict[str, int] = self._engine.ask("topics")
        return found

    def advance(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advance its clock: events due by then happen now, timers included."""
        self._engine.ask("advance", time_span(seconds, hours, days))

    def fill_disk(self) -> FullDisk:
        """Have its disk refuse what needs room. As a context, until its end."""
        return FullDisk(self._engine)


class FullDisk:
    """A disk that refuses what needs room, until it is emptied or the context ends."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.ask("fill_disk", True)

    def empty(self) -> None:
        """Free the disk; a broker that has ended because of it must be restarted."""
        self._engine.ask("fill_disk", False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.empty()
