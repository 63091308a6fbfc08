"""A metadata store without a disk: an ensemble that several sessions share.

For tests and simulations. Everything is committed the moment it is submitted; watches are called
from the event loop, never from inside the write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.metadata_store.store import (
    Delete,
    Operation,
    Result,
    SessionExpiredError,
    StoreError,
)
from controller.metadata_store.tree import Applied, ZnodeTree
from controller.metadata_store.tree_store import TreeStore

if TYPE_CHECKING:
    from collections.abc import Sequence


class MemoryEnsemble:
    """The tree and its sessions; stands for the ZooKeeper ensemble."""

    def __init__(self) -> None:
        """Start with an empty tree."""
        self.tree = ZnodeTree()
        self._next_session = 1

    def connect(self) -> MemoryStore:
        """Open a session."""
        session_id = self._next_session
        self._next_session += 1
        return MemoryStore(self.tree, session_id)


class MemoryStore(TreeStore):
    """A session on a shared tree."""

    def __init__(self, tree: ZnodeTree, session_id: int) -> None:
        """Use `MemoryEnsemble.connect` instead."""
        super().__init__(tree)
        self._session_id = session_id
        self._expired = False

    @property
    def session_id(self) -> int:
        """Owner of this client's ephemeral nodes."""
        return self._session_id

    def expire(self) -> None:
        """Expire the session as ZooKeeper does for a silent client: ephemeral nodes go."""
        if self._expired:
            return
        self._expired = True
        paths = self._tree.ephemerals().get(self._session_id, [])
        _call_soon(self._tree.apply([Delete(path) for path in paths], self._session_id))

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Commit each transaction at once."""
        outcomes: list[list[Result] | StoreError] = []
        for operations in transactions:
            try:
                self._require_session()
                applied = self._tree.apply(operations, self._session_id)
            except StoreError as error:
                outcomes.append(error)
                continue
            _call_soon(applied)
            outcomes.append(applied.results)
        return outcomes

    async def close(self) -> None:
        """End the session."""
        self.expire()

    def _require_session(self) -> None:
        if self._expired:
            raise SessionExpiredError("/", "the session has expired")


def _call_soon(applied: Applied) -> None:
    loop = asyncio.get_running_loop()
    for watch, change in applied.notices:
        loop.call_soon(watch, change)
