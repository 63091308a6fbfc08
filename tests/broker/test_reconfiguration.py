"""Parts of a running broker go on by a configuration that has changed."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from broker.maintenance.log_cleaner import LogCleaner
from broker.network.connection_quotas import configured_limits
from broker.runtime.clock import SystemClock
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_settings import LogSettings
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.supervised import end, supervision

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def cleaning(threads: int) -> BrokerConfig:
    return BrokerConfig(log_cleaner_threads=threads, log_cleaner_backoff_ms=1)


def test_cleaners_become_more_and_fewer(tmp_path: Path) -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        supervised = supervision(timers)

        def running() -> set[str]:
            return {task.get_name() for task in supervised._tasks}

        logs = LogDirectories.open([str(tmp_path)], Disk(LocalFileSystem()), LogSettings())
        with ThreadPoolExecutor(1) as executor:
            loop = BackgroundLoop(SystemClock(), timers, supervised.spawn, one_step_at_a_time)
            cleaner = LogCleaner(cleaning(2), logs, loop, executor, supervised)
            cleaner.start()
            assert running() == {"log cleaner 0", "log cleaner 1"}
            cleaner.reconfigure(cleaning(3))
            assert running() == {f"log cleaner {number}" for number in range(3)}
            cleaner.reconfigure(cleaning(1))
            async with asyncio.timeout(60):
                while len(running()) > 1:
                    await timers.sleep(1)
            assert running() == {"log cleaner 0"}
            await end(supervised)
        logs.close()

    asyncio.run(scenario())


def test_limits_of_connections_change_for_those_that_come() -> None:
    async def scenario() -> None:
        limits = await configured_limits(BrokerConfig(max_connections=1))
        assert limits.admit("a") is None
        assert limits.admit("a") is not None
        await limits.change(BrokerConfig(max_connections=3, max_connection_creation_rate=7))
        assert limits.admit("a") is None
        pace = limits.pace
        assert pace is not None
        await limits.change(BrokerConfig(max_connections=2, max_connection_creation_rate=7))
        assert limits.pace is pace, "turns that were given are kept"
        assert limits.admit("a") is not None

    asyncio.run(scenario())


def test_limits_of_a_host_that_is_not_to_be_found_change_nothing() -> None:
    async def scenario() -> None:
        limits = await configured_limits(BrokerConfig(max_connections=1))
        await limits.change(BrokerConfig(max_connections_per_ip_overrides="no.such.host.invalid:1"))
        assert limits.admit("a") is None
        assert limits.admit("a") is not None

    asyncio.run(scenario())


def test_a_silent_name_server_blocks_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, answered = threading.Event(), threading.Event()
    was_served = []

    def slow(*_: object, **__: object) -> list[object]:
        asked.set()
        was_served.append(answered.wait(60))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def scenario() -> None:
        limits = await configured_limits(BrokerConfig(max_connections=5))
        changing = asyncio.ensure_future(  # noqa: TID251
            limits.change(BrokerConfig(max_connections_per_ip_overrides="some.host:1"))
        )
        while not asked.is_set():
            await asyncio.sleep(0)  # noqa: TID251
        assert limits.limits[0] == 5, "until the name is known"
        answered.set()
        await changing
        assert was_served == [True]
        assert limits.limits[2] == {"10.1.2.3": 1}

    asyncio.run(scenario())


def test_the_last_change_counts_however_long_names_of_an_earlier_one_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overtaken = threading.Event()

    def slow(*_: object, **__: object) -> list[object]:
        assert overtaken.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.1.2.3", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def scenario() -> None:
        limits = await configured_limits(BrokerConfig())
        early = asyncio.ensure_future(  # noqa: TID251
            limits.change(BrokerConfig(max_connections_per_ip_overrides="some.host:1"))
        )
        await asyncio.sleep(0)  # noqa: TID251
        await limits.change(BrokerConfig(max_connections=3))
        overtaken.set()
        await early
        assert limits.limits[0] == 3
        assert not limits.limits[2]

    asyncio.run(scenario())
