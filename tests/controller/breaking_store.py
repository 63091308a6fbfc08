"""A metadata store in memory whose connection breaks where a test wants it to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.metadata_store.store import (
    Create,
    Operation,
    OutcomeUnknownError,
    Result,
    SetData,
    StoreError,
    StoreUnavailableError,
    TooLargeError,
    Watch,
    Znode,
)
from tests.controller.memory_store import MemoryEnsemble, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BreakingStore(MemoryStore):
    """Answers until `breaks_at(path)`; that request breaks the connection, and what comes then.

    It stands again when somebody waits for that, unless `is_away` is set.
    """

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        super().__init__(ensemble.tree, ensemble.connect().session_id)
        self.breaks_at: Callable[[str], bool] = lambda _: False
        self.is_away = False
        self.does_writes = False
        """The write that breaks the connection is carried out."""
        self.turns_of_a_write = 0
        """Turns of the event loop until a write has reached the store."""
        self.answers_writes: asyncio.Event | None = None
        """Writes that are carried out are answered once this is set."""
        self.answers_reads: asyncio.Event | None = None
        """Reads of many nodes are answered once this is set."""
        self.largest_bytes: int | None = None
        """Greatest size of a node."""
        self.has_broken = False
        """The connection has broken."""
        self._is_broken = False
        self._back = asyncio.Event()

    def come_back(self) -> None:
        """Be reachable again."""
        self.is_away = False
        self._back.set()

    @property
    def is_reachable(self) -> bool:
        return not self._is_unreachable

    async def wait_until_reachable(self) -> None:
        while self.is_away:
            await self._back.wait()
        self._require_session()
        self._is_broken = False

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        self._read(path)
        return await super().get(path, watch)

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        for path in paths:
            self._read(path)
        if self.answers_reads is not None:
            await self.answers_reads.wait()
        return await super().get_many(paths)

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        self._read(path)
        return await super().exists(path, watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._read(path)
        return await super().children(path, watch)

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        for _ in range(self.turns_of_a_write):
            await _turn()
        path = transactions[0][0].path if transactions else "/"
        if self._is_unreachable:
            return [StoreUnavailableError(path, "not reachable") for _ in transactions]
        if any(self._is_too_large(one) for operations in transactions for one in operations):
            return [TooLargeError(path, "too many bytes") for _ in transactions]
        if not self.breaks_at(path):
            outcomes = await super().multi_many(transactions)
            if self.answers_writes is not None:
                await self.answers_writes.wait()
            return outcomes
        self._is_broken = self.has_broken = True
        if self.does_writes:
            await super().multi_many(transactions)
        return [OutcomeUnknownError(path, "broke off") for _ in transactions]

    def _is_too_large(self, operation: Operation) -> bool:
        data = operation.data if isinstance(operation, Create | SetData) else None
        return self.largest_bytes is not None and len(data or b"") > self.largest_bytes

    @property
    def _is_unreachable(self) -> bool:
        return self._is_broken or self.is_away

    def _read(self, path: str) -> None:
        if not self._is_unreachable and self.breaks_at(path):
            self._is_broken = self.has_broken = True
        if self._is_unreachable:
            raise StoreUnavailableError(path, "not reachable")


async def _turn() -> None:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_soon(over.set_result, None)
    await over
