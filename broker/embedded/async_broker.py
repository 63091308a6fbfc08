"""A broker on the event loop of its caller, for tests that are coroutines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from broker.embedded.async_faults import AsyncFaultyRequests
from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.log_lines import LogLines, unwatch, watch
from broker.embedded.machine.own_directory import remove_own_directory
from broker.embedded.machine.reserved_port import ReservedPort
from broker.embedded.machine.turned_time import TurnedTime, time_span
from broker.embedded.requests_view import requests_of
from broker.embedded.settings import stated
from broker.embedded.stored_records import StoredRecord, partitions_of, stored_records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from broker.embedded.faults.sent_requests import SentRequest
    from broker.embedded.hosted_broker import HostedBroker
    from broker.embedded.security import Security
    from broker.embedded.settings import BrokerSettings, Value
    from protocol.schema import Request

R = TypeVar("R", bound="Request")


class AsyncBroker(AsyncFaultyRequests):
    """Broker of `async with EmbeddedBroker(...)`. Created by `started`.

    A client that blocks this loop blocks the broker, too: for such a client use `with`. It cannot
    be paused, since the loop is the test's.
    """

    def __init__(self, settings: BrokerSettings, ports: list[ReservedPort]) -> None:
        self._settings = settings
        self._ports = ports
        self._lines = LogLines()
        from broker.embedded.hosted_broker import HostedBroker, Surroundings  # noqa: PLC0415

        self._loop = asyncio.get_running_loop()
        self._hosted = HostedBroker(settings, Surroundings(self._lines, TurnedTime()))

    @classmethod
    async def started(cls, settings: BrokerSettings) -> Self:
        """Start one; raises EmbeddedBrokerError."""
        ports = [ReservedPort() for _ in range(settings.ports_wanted)]
        self = cls(settings.at(*(port.number for port in ports)), ports)
        watch()
        try:
            await self._broker.start()
        except BaseException:
            self._give_back()
            raise
        return self

    async def stop(self) -> None:
        """Have it stop in order, and leave nothing behind."""
        if self._loop.is_closed():
            self._give_back()
        broker = self._broker
        try:
            await broker.stop()
        finally:
            self._give_back()

    async def kill(self) -> None:
        """End it as SIGKILL does. Its logs and its port wait for `start`."""
        await self._broker.kill()

    async def start(self) -> None:
        """Start it again, after `kill`."""
        await self._broker.start()

    async def restart(self) -> None:
        """Stop it in order, and start it with the same logs at the same port."""
        await self._broker.stop()
        await self._broker.start()

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap server for clients, `host:port`."""
        return self._settings.bootstrap_server

    @property
    def client_config(self) -> dict[str, str]:
        """Configuration for a client of librdkafka, `bootstrap.servers` and security."""
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
    def log_lines(self) -> list[str]:
        """The newest 2,000 lines of its log."""
        return self._lines()

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, Value] | None = None,
    ) -> None:
        """Create a topic; it can be used when this returns."""
        await self._broker.create_topic(name, partitions, replication_factor, stated(config))

    async def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        await self._broker.delete_topic(name)

    async def topics(self) -> dict[str, int]:
        """The number of partitions of each topic, internal ones too."""
        return await self._broker.topics()

    async def records(
        self, topic: str, partition: int | None = None, *, committed_only: bool = False
    ) -> list[StoredRecord]:
        """Records in the logs of a topic, by partition and offset, without a consumer."""
        found: list[StoredRecord] = []
        for index in partitions_of(await self.topics(), topic, partition):
            found += stored_records(await self._broker.read(topic, index, committed_only))
        return found

    async def wait_for(self, group: str, lag: int = 0, timeout_seconds: float = 10.0) -> None:
        """Wait until a group has committed all but `lag` records. Raises NotReachedError."""
        await self._broker.wait_for(group, lag, timeout_seconds)

    async def is_running(self) -> bool:
        """Return whether it has been neither killed nor ended by a failure."""
        return await self._broker.is_running()

    async def failure(self) -> str | None:
        """Reason why it ended by itself, if it did: a failure of its last disk, say."""
        return await self._broker.failure()

    async def requests(self) -> list[SentRequest]:
        """Requests that clients have sent."""
        return await self._broker.sent_requests()

    @overload
    async def requests_of(self, request: type[R], *, client_id: str | None = None) -> list[R]: ...

    @overload
    async def requests_of(self, request: str, *, client_id: str | None = None) -> list[Any]: ...

    async def requests_of(
        self, request: type[Request] | str, *, client_id: str | None = None
    ) -> list[Any]:
        """Decoded requests of one kind, by class or name."""
        return requests_of(await self.requests(), request, client_id)

    async def advance(self, *, seconds: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advance the broker's clock: events due by then happen now. The loop's clock stays."""
        await self._broker.advance(time_span(seconds, hours, days))

    async def fill_disk(self, *, is_full: bool = True) -> None:
        """Have its disk refuse, or take again, what needs room."""
        await self._broker.fill_disk(is_full)

    @property
    def _broker(self) -> HostedBroker:
        """The broker, if called on its loop. Raises EmbeddedBrokerError otherwise."""
        if asyncio.get_running_loop() is not self._loop:
            state = "is closed" if self._loop.is_closed() else "is another one"
            raise EmbeddedBrokerError(
                f"the broker at {self.bootstrap_servers} runs on the event loop it was started on, "
                f"which {state}: give its fixture the loop of the test (loop_scope), or start it "
                "by with, which gives it a loop of its own"
            )
        return self._hosted

    def _give_back(self) -> None:
        unwatch()
        for port in self._ports:
            port.release()
        remove_own_directory(self._settings.directory)
