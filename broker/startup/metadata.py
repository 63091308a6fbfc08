"""The fourth stage of a start: the metadata store is open, and this broker knows its id."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from broker.startup.disk import open_store, store_patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.runtime.shutdown import UndoStack
    from broker.startup.logs import LogStorage
    from broker.startup.machine import Machine
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore


@dataclasses.dataclass(frozen=True, slots=True)
class OpenMetadata:
    """The metadata store, and what this broker is in it."""

    machine: Machine
    config: BrokerConfig
    """From the file, with the broker's id."""
    store: MetadataStore
    cluster_id: str
    is_new: bool
    """True if it knows no topics yet, and only this broker could create any."""

    async def do(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step that needs the store, again if the connection to it breaks meanwhile.

        Raises StartAbandonedError if the broker is asked to stop before the step is done.
        """
        await self.machine.unless_stopped(store_patience(self.config, self.store).do(step))


async def open_metadata(
    config: BrokerConfig, machine: Machine, storage: LogStorage, undo: UndoStack
) -> OpenMetadata:
    """Open the store, beside the logs or in ZooKeeper. Raises StartError."""
    opened = await machine.unless_stopped(
        open_store(config, storage.logs, storage.disk_threads, machine.platform)
    )
    undo.push("closing the metadata store", opened.store.close)
    undo.push("cancelling tasks", machine.supervision.close)  # all that there are use the store
    identified = config.identified(opened.broker_id)
    return OpenMetadata(machine, identified, opened.store, opened.cluster_id, opened.is_new)
