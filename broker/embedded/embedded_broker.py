"""A broker for tests, on a thread of its own or in a process of its own."""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import TYPE_CHECKING, Self

from broker.embedded.controlled_broker import ControlledBroker
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.own_directory import remove_own_directory
from broker.embedded.machine.reserved_port import ReservedPort
from broker.embedded.operations import PRINCIPAL
from broker.embedded.settings import (
    ALONE,
    QUICK,
    BrokerSettings,
    make_directory,
    secured,
    settled_choices,
    stated,
    warn_of_unknown_keys,
    with_super_users,
)
from broker.embedded.stored_records import partitions_of, stored_records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.embedded.async_broker import AsyncBroker
    from broker.embedded.engines.engine import Engine
    from broker.embedded.settings import Isolation, Protocol, Storage, Value
    from broker.embedded.stored_records import StoredRecord


class EmbeddedBroker(ControlledBroker):
    """One broker without ZooKeeper, from `start` to `stop`; `with` does both.

    Its methods may be called from any thread, and block it. `async with` gives another object,
    whose broker runs on the caller's loop.
    """

    def __init__(
        self,
        config: Mapping[str, Value] | None = None,
        *,
        storage: Storage = "disk",
        log_dir: Path | None = None,
        isolation: Isolation = "thread",
        security: Protocol | None = None,
    ) -> None:
        """`config` has keys of `server.properties`.

        Logs are in a directory that goes with the broker: on the disk, or in `/dev/shm`; those in
        `log_dir` stay. With `security`, clients connect by TLS or log in by SASL, with what
        `client_config` says. Nothing is taken from the machine before `start`.
        """
        choices = settled_choices(storage, security, isolation)
        warn_of_unknown_keys(config)
        whole = {**stated(QUICK), **stated(ALONE), **stated(config)}
        self._config = with_super_users(whole, PRINCIPAL)
        self._storage = choices.storage
        self._log_dir = log_dir
        self._isolation = choices.isolation
        self._security = choices.security
        self._started: _Started | None = None
        self._async: AsyncBroker | None = None

    # Its life

    def start(self) -> Self:
        """Start it, or start it again after `kill`; returns when it serves."""
        if self._started is None:
            self._started = _Started(self._new_settings(), self._isolation)
            try:
                self._engine.ask("start")
            except BaseException:
                self._end()
                raise
        else:
            self._engine.ask("start")
        return self

    def stop(self) -> None:
        """Have it stop in order, and leave nothing behind."""
        if self._started is not None and self._started.is_ours:
            self._engine.resume()
            try:
                if self.is_running:
                    self._engine.ask("stop")
            finally:
                self._end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncBroker:
        from broker.embedded.async_broker import AsyncBroker  # noqa: PLC0415 - which few need

        if self._isolation == "process":
            raise EmbeddedBrokerError("async with runs on this loop; isolation='process' does not")
        if not _is_on_asyncio():
            raise EmbeddedBrokerError(
                "async with needs asyncio, which does not run here: start the broker by with, "
                "which gives it a thread, and use it from any event loop (trio's, say)"
            )
        self._async = await AsyncBroker.started(self._new_settings())
        return self._async

    async def __aexit__(self, *_: object) -> None:
        running, self._async = self._async, None
        if running is not None:
            await running.stop()

    # Topics and groups

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, Value] | None = None,
    ) -> None:
        """Create a topic; it can be used when this returns."""
        self._engine.ask("create_topic", name, partitions, replication_factor, stated(config))

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._engine.ask("delete_topic", name)

    def records(
        self, topic: str, partition: int | None = None, *, committed_only: bool = False
    ) -> list[StoredRecord]:
        """Records in the logs of a topic, by partition and offset, without a consumer.

        With `committed_only`, the records that a `read_committed` consumer would get.
        """
        return [
            record
            for index in partitions_of(self.topics(), topic, partition)
            for record in stored_records(self._engine.ask("read", topic, index, committed_only))
        ]

    def wait_for(self, group: str, lag: int = 0, timeout: float = 10.0) -> None:
        """Wait until a group has committed all but `lag` records. Raises NotReachedError.

        It counts for the partitions in which the group has committed something.
        """
        self._engine.ask("wait_for", group, lag, timeout)

    @property
    def _running(self) -> _Started:
        if self._started is None:
            raise EmbeddedBrokerError("the broker was not started")
        return self._started

    @property
    def _engine(self) -> Engine:
        return self._running.engine

    @property
    def _settings(self) -> BrokerSettings:
        return self._running.settings

    @property
    def is_ours(self) -> bool:
        """True unless it was started by a process of which this is a fork."""
        return self._started is None or self._started.is_ours

    @property
    def is_running(self) -> bool:
        """True if it was started, and neither stopped nor killed, nor ended by a failure."""
        return self._started is not None and super().is_running

    @property
    def log_lines(self) -> list[str]:
        """The newest 2,000 lines of its log; none once it was stopped."""
        return [] if self._started is None else super().log_lines

    def restore(self) -> None:
        """Clear all faults; a stopped broker is started again, empty and at another port."""
        if self._started is None:
            self.start()
        else:
            super().restore()

    def _new_settings(self) -> BrokerSettings:
        directory = make_directory(self._storage, "broker")
        security = secured(self._security, directory)
        return BrokerSettings(0, 0, directory, self._config, self._log_dir, security=security)

    def _end(self) -> None:
        started, self._started = self._started, None
        if started is not None:
            started.end()


class _Started:
    """Resources that a broker takes from the machine, and returns even if it is not stopped."""

    def __init__(self, settings: BrokerSettings, isolation: Isolation) -> None:
        self._process = os.getpid()
        self._ports = [ReservedPort() for _ in range(settings.ports_wanted)]
        self.settings = settings.at(*(port.number for port in self._ports))
        self._clean_up = weakref.finalize(self, _remove, self._process, settings.directory)
        self.engine: Engine = _engine(self.settings, isolation)

    @property
    def is_ours(self) -> bool:
        """True if this process has started it: a fork leaves it alone."""
        return self._process == os.getpid()

    def end(self) -> None:
        """Give all of it back."""
        try:
            self.engine.close()
        finally:
            for port in self._ports:
                port.release()
            self._clean_up()


def _is_on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _engine(settings: BrokerSettings, isolation: Isolation) -> Engine:
    if isolation == "process":
        from broker.embedded.engines.in_process import ProcessEngine  # noqa: PLC0415 - few need it

        return ProcessEngine(settings)
    from broker.embedded.engines.on_thread import thread_engine  # noqa: PLC0415 - all of a broker

    return thread_engine(settings)


def _remove(process: int, directory: Path) -> None:
    """At the latest when the interpreter ends, in the process that made the directory."""
    if process == os.getpid():
        remove_own_directory(directory)
