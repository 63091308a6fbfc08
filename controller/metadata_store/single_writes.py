"""Single writes as transactions of one: the same for every store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from controller.metadata_store.store import (
    ANY_VERSION,
    Create,
    Delete,
    Operation,
    Result,
    SetData,
    StoreError,
    Znode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class SingleWrites(ABC):
    """The part of `MetadataStore` that follows from `multi_many`."""

    @abstractmethod
    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do independent transactions in order; returns when they are durable."""

    async def create(
        self, path: str, data: bytes | None, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Make one node; returns its path."""
        return cast("str", (await self.multi([Create(path, data, ephemeral, sequence)]))[0])

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Znode:
        """Write one node; returns it as written."""
        return cast("Znode", (await self.multi([SetData(path, data, version)]))[0])

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove one node."""
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all operations or none."""
        outcome = (await self.multi_many([operations]))[0]
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome
