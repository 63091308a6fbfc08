"""The third stage of a start: log directories are locked; loaded when the settings are read."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.maintenance.failed_disks import FailedDisks
from broker.partitions.group_commit import GroupCommit
from broker.runtime.compute_pool import ComputePool
from broker.startup.disk import adopt, load_logs, open_directories

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from broker.runtime.shutdown import UndoStack
    from broker.startup.machine import Machine
    from broker.startup.metadata import OpenMetadata
    from broker.startup.settings import Settings
    from config.broker import BrokerConfig
    from storage.directory.directories import LogDirectories

DISK_THREADS: Final = 4
REPLICAS: Final = "replicas"
REPLICA_THREADS: Final = 2


@dataclasses.dataclass(frozen=True, slots=True)
class LogStorage:
    """The logs of this broker, and the threads that work on them."""

    logs: LogDirectories
    disk_threads: Executor
    """For what may wait for the disk."""
    replica_threads: Executor
    """Write what followers fetch in large pieces."""
    compute_pool: ComputePool
    """For what computes; its results go to the logs."""
    group_commit: GroupCommit
    """For what must be on the disk before it is acknowledged."""


async def lock_directories(config: BrokerConfig, machine: Machine, undo: UndoStack) -> LogStorage:
    """Lock the log directories; the logs are loaded later. Raises StartError."""
    platform = machine.platform
    threads = platform.threads(DISK_THREADS, "disk")
    try:
        disk = machine.open_files.disk(platform.filesystem)
        logs = await open_directories(config, threads, disk)
    except BaseException:
        threads.shutdown()
        raise
    logs.on_failure = FailedDisks(logs, machine.stop.give_up).note
    logs.on_exhaustion = machine.open_files.note_exhaustion
    undo.push("closing the logs", partial(_close, logs, machine))
    undo.push("closing threads", threads.shutdown)
    replica_threads = platform.threads(REPLICA_THREADS, REPLICAS)
    undo.push("closing replicas' threads", partial(replica_threads.shutdown, cancel_futures=True))
    compute_pool = ComputePool(machine.loop, platform)
    undo.push("closing side work", compute_pool.close)
    group_commit = GroupCommit(machine.loop, machine.timers, platform)
    undo.push("closing the group commit", group_commit.close)
    return LogStorage(logs, threads, replica_threads, compute_pool, group_commit)


async def _close(logs: LogDirectories, machine: Machine) -> None:
    """On a thread of its own: the others are closed by now."""
    thread = machine.platform.threads(1, "closing logs")
    try:
        await machine.loop.run_in_executor(thread, logs.close)
    finally:
        thread.shutdown()


async def load(
    storage: LogStorage, metadata: OpenMetadata, settings: Settings, machine: Machine
) -> None:
    """Load all logs; a new store takes over the topics found in them. Raises StartError.

    Raises StartAbandonedError if the broker is asked to stop meanwhile.
    """
    await asyncio.get_running_loop().run_in_executor(
        storage.disk_threads,
        load_logs,
        storage.logs,
        settings.topics.topic_config,
        machine.clock,
        machine.stop.event.is_set,
    )
    if metadata.is_new:
        await adopt(settings.broker.current, storage.logs, metadata.store)
