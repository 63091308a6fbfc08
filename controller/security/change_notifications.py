"""Notifications in the metadata tree: numbered nodes, each of which names a change.

A writer adds a node; every broker watches the children of one path, and processes those that are
new to it, in order. After a lost session it reads everything again, since others may have purged
missed notifications meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controller.metadata_store.store import ChangeKind, Delete, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from controller.metadata_store.store import Change, MetadataStore

KEPT_NOTIFICATIONS = 1000
"""Older ones are deleted by the brokers that have read them.

Fixed: these are far more than come between two reads of a live broker.
"""

logger = logging.getLogger(__name__)


def _nobody() -> None:
    """Default of `on_news`, until a callback is set."""


class ChangeNotifications:
    """Notifications below one path."""

    def __init__(
        self,
        store: MetadataStore,
        path: str,
        process: Callable[[bytes | None], Awaitable[None]],
        read_all: Callable[[], Awaitable[None]],
    ) -> None:
        """`process` is given the data of each node that is new."""
        self._store = store
        self._path = path
        self._process = process
        self._read_all = read_all
        self._newest_seen: str | None = None
        self._is_watching = False
        self._has_missed = False
        self._reading = asyncio.Lock()
        self.on_news: Callable[[], object] = _nobody
        """Called on the loop when `refresh` should run, and be tried again until it succeeds."""

    async def refresh(self) -> None:
        """Process new notifications, and watch for more. Those found at the start are not new.

        Raises StoreError, and has then to be called again.
        """
        async with self._reading:
            names = await self._names()
            if self._has_missed:
                await self._read_all()
                self._has_missed = False
            elif self._newest_seen is not None:
                await self._process_each([name for name in names if name > self._newest_seen])
            if names:
                self._newest_seen = max(self._newest_seen or "", names[-1])
            elif self._newest_seen is None:
                self._newest_seen = ""
            await self._purge(names[:-KEPT_NOTIFICATIONS])

    async def _names(self) -> list[str]:
        if self._is_watching:
            return await self._store.children(self._path)
        self._is_watching = True  # before the answer, which a change may overtake
        try:
            return await self._store.children(self._path, self._notice)
        except BaseException:
            self._is_watching = False
            raise

    def _notice(self, change: Change) -> None:
        self._is_watching = False
        self._has_missed |= change.kind is ChangeKind.SESSION
        self.on_news()

    async def _process_each(self, names: list[str]) -> None:
        nodes = await self._store.get_many([f"{self._path}/{name}" for name in names])
        for name, node in zip(names, nodes, strict=True):
            if node is not None:
                await self._process(node.data)
            self._newest_seen = name

    async def _purge(self, names: list[str]) -> None:
        """Remove old ones; another broker may have been faster."""
        outcomes = await self._store.multi_many(
            [[Delete(f"{self._path}/{name}")] for name in names]
        )
        for outcome in outcomes:
            if isinstance(outcome, StoreError):
                logger.debug("a notification was purged by another broker: %s", outcome)
