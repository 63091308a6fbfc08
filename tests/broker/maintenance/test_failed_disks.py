"""A failed log directory is reported to the controller, or the broker exits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.maintenance.failed_disks import FailedDisks
from broker.startup.parts import put_together
from config.broker import BrokerConfig
from controller.brokers.registration import create_skeleton
from controller.znodes import LOG_DIR_EVENTS
from storage.directory.directories import LogDirectories
from storage.disk import Disk
from storage.log.log_settings import LogSettings
from tests.controller.breaking_store import BreakingStore
from tests.controller.harness import NOW_MS, turns
from tests.controller.memory_store import MemoryEnsemble
from tests.simulation.machine.disk import SimulatedDisk
from tests.support.broker_parts.services import Adapters, foundation_in_memory
from tests.support.broker_parts.supervised import end

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FULL = OSError(28, "No space left on device")


def two_directories() -> LogDirectories:
    return LogDirectories.open(
        ["/one", "/other"], Disk(SimulatedDisk(lambda: NOW_MS)), LogSettings()
    )


def test_while_there_is_no_controller_only_the_last_directory_ends_the_broker() -> None:
    logs, reasons = two_directories(), list[str]()
    logs.on_failure = FailedDisks(logs, reasons.append).note

    logs.directories[0].fail(FULL)
    assert reasons == []
    logs.directories[1].fail(FULL)

    assert reasons == ["no log directory is left that can be written"]


def run(scenario: Callable[[Adapters, BreakingStore], Awaitable[None]]) -> None:
    """Run a scenario on the parts of a broker with two log directories."""

    async def main() -> None:
        store = BreakingStore(MemoryEnsemble())
        await create_skeleton(store)
        adapters = Adapters(store=store, logs=two_directories())
        base = foundation_in_memory(BrokerConfig(broker_id=0), adapters)
        put_together(base)
        try:
            await scenario(adapters, store)
        finally:
            await end(base.machine.supervision)

    asyncio.run(main())


def test_a_failed_directory_is_reported_and_the_broker_keeps_running() -> None:
    async def scenario(adapters: Adapters, store: BreakingStore) -> None:
        adapters.logs.directories[0].fail(FULL)
        await turns()

        assert await store.children(LOG_DIR_EVENTS) == ["log_dir_event_0000000000"]
        assert adapters.given_up == []

    run(scenario)


def test_a_broker_with_all_its_parts_ends_with_its_last_directory() -> None:
    async def scenario(adapters: Adapters, store: BreakingStore) -> None:
        for directory in adapters.logs.directories:
            directory.fail(FULL)

        assert adapters.given_up == ["no log directory is left that can be written"]

    run(scenario)
