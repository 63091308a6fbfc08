"""Parts of a running broker go on by a configuration that has changed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from broker.clock import SystemClock
from broker.connection_limits import configured_limits
from broker.log_cleaner import LogCleaner
from broker.loop import Loop
from broker.timers import Timers
from config.broker import BrokerConfig
from storage.directories import LogDirectories
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log_reading import LogSettings
from tests.support.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def cleaning(threads: int) -> BrokerConfig:
    return BrokerConfig(log_cleaner_threads=threads, log_cleaner_backoff_ms=1)


def test_cleaners_become_more_and_fewer(tmp_path: Path) -> None:
    async def scenario() -> None:
        running: set[str] = set()
        timers = Timers(asyncio.get_running_loop())

        def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            task = asyncio.get_running_loop().create_task(work, name=name)
            running.add(name)
            task.add_done_callback(lambda _: running.discard(name))
            tasks.append(task)
            return task

        tasks: list[asyncio.Task[None]] = []
        logs = LogDirectories.open([str(tmp_path)], Disk(LocalFileSystem()), LogSettings())
        with ThreadPoolExecutor(1) as executor:
            loop = Loop(SystemClock(), timers, spawn, one_step_at_a_time)
            cleaner = LogCleaner(cleaning(2), logs, loop, executor)
            cleaner.start()
            assert running == {"log cleaner 0", "log cleaner 1"}
            cleaner.reconfigure(cleaning(3))
            assert running == {f"log cleaner {number}" for number in range(3)}
            cleaner.reconfigure(cleaning(1))
            async with asyncio.timeout(10):
                while len(running) > 1:
                    await timers.sleep(1)
            assert running == {"log cleaner 0"}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        logs.close()

    asyncio.run(scenario())


def test_limits_of_connections_change_for_those_that_come() -> None:
    limits = configured_limits(BrokerConfig(max_connections=1))
    assert limits.admit("a") is None
    assert limits.admit("a") is not None
    limits.change(BrokerConfig(max_connections=3, max_connection_creation_rate=7))
    assert limits.admit("a") is None
    pace = limits.pace
    assert pace is not None
    limits.change(BrokerConfig(max_connections=2, max_connection_creation_rate=7))
    assert limits.pace is pace, "turns that were given are kept"
    assert limits.admit("a") is not None


def test_limits_of_a_host_that_is_not_to_be_found_change_nothing() -> None:
    limits = configured_limits(BrokerConfig(max_connections=1))
    limits.change(BrokerConfig(max_connections_per_ip_overrides="no.such.host.invalid:1"))
    assert limits.admit("a") is None
    assert limits.admit("a") is not None
