"""Reaction of a broker to failed log directories: it notifies the controller, or ends."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from controller.brokers.log_dir_events import announce_directory_failure
from controller.metadata_store.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.runtime.supervision import Supervision
    from broker.runtime.timers import Timers
    from controller.metadata_store.store import MetadataStore
    from storage.directory.directories import LogDirectories
    from storage.directory.log_directory import LogDirectory

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1000


class FailedDisks:
    """Notified of each directory that goes offline, on the thread that met the error."""

    def __init__(
        self,
        logs: LogDirectories,
        give_up: Callable[[str], None],
        announce: Callable[[], object] | None = None,
    ) -> None:
        """Both are called on any thread; `announce` is None without a controller."""
        self._logs = logs
        self._give_up = give_up
        self._announce = announce

    def note(self, _directory: LogDirectory) -> None:
        """A log directory is offline (storage said which); the broker ends with the last one."""
        if all(one.failure is not None for one in self._logs.directories):
            self._give_up("no log directory is left that can be written")
        elif self._announce is not None:
            self._announce()


class FailureAnnouncement:
    """Notifies the controller of a failed directory, retrying until it succeeds."""

    def __init__(
        self, store: MetadataStore, broker_id: int, timers: Timers, supervision: Supervision
    ) -> None:
        self._store = store
        self._broker_id = broker_id
        self._timers = timers
        self._supervision = supervision

    def begin(self) -> None:
        """Announce it in the background. On the event loop only."""
        self._supervision.keep("announcement of a failed disk", self._announce_patiently)

    async def _announce_patiently(self) -> None:
        while True:
            try:
                await announce_directory_failure(self._store, self._broker_id)
            except StoreError as error:
                logger.warning(
                    "failed log directory not yet announced to the controller: %s", error
                )
                await self._timers.sleep(RETRY_MS)
            else:
                return
