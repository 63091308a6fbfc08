"""What a broker does about log directories that fail: the controller hears of it, or it ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from controller.brokers.log_dir_events import announce_directory_failure
from controller.metadata_store.store import StoreError

if TYPE_CHECKING:
    from broker.app import Broker
    from storage.directory.log_directory import LogDirectory

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1000


class FailedDisks:
    """Hears of each directory that goes offline, on whatever thread met the error."""

    def __init__(self, broker: Broker) -> None:
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
                logger.warning("the announcement of a failed disk must wait: %s", error)
                await broker.timers.sleep(RETRY_MS)
            else:
                return
