"""What a broker does about log directories that fail: the controller hears of it, or it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from controller.brokers.log_dir_events import announce_directory_failure
from controller.metadata_store.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.supervision import Supervision
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore
    from storage.directory.directories import LogDirectories
    from storage.directory.log_directory import LogDirectory

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1000


class FailableBroker(Protocol):
    """A broker as `FailedDisks` sees it; it has a controller and a store once it was wired."""

    config: BrokerConfig
    logs: LogDirectories
    timers: Timers
    supervision: Supervision
    store: MetadataStore

    def give_up(self, reason: str, /) -> None:
        """Stop as one that cannot go on. From any thread."""

    def call_soon(self, callback: Callable[[], None], /) -> object:
        """Call something on the event loop. From any thread."""


class FailedDisks:
    """Hears of each directory that goes offline, on whatever thread met the error."""

    def __init__(self, broker: FailableBroker) -> None:
        self._broker = broker

    def note(self, _directory: LogDirectory) -> None:
        """A log directory is offline (storage said which); the broker ends with the last one."""
        broker = self._broker
        if all(one.failure is not None for one in broker.logs.directories):
            broker.give_up("no log directory is left that can be written")
        elif hasattr(broker, "controller"):
            broker.call_soon(self._announce)

    def _announce(self) -> None:
        self._broker.supervision.keep("announcement of a failed disk", self._announce_patiently)

    async def _announce_patiently(self) -> None:
        """Tell the controller, however long that takes: nobody else does."""
        broker = self._broker
        while True:
            try:
                await announce_directory_failure(broker.store, broker.config.broker_id)
            except StoreError as error:
                logger.warning(
                    "failed log directory not yet announced to the controller: %s", error
                )
                await broker.timers.sleep(RETRY_MS)
            else:
                return
