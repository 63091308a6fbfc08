"""Becoming controller, and the fence around everything a controller writes.

Winning is one transaction: create `/controller` and raise `/controller_epoch` at the version that
was read, so that only the winner raises the epoch. Every later write of the winner checks the
resulting version; once another broker has won, all of them fail.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from controller.context import Term
from controller.metadata_store.flights import in_flights
from controller.metadata_store.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    Operation,
    Result,
    SetData,
    StoreError,
    Watch,
)
from controller.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    decode_controller,
    decode_epoch,
    encode_controller,
    encode_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.ports import Slices

INITIAL_EPOCH = 0


class ControllerMovedError(Exception):
    """Another broker is controller now; nothing was written."""


async def elect(
    store: MetadataStore, broker_id: int, now_ms: int, watch: Watch | None = None
) -> Term | None:
    """Become controller, or find that this session is it already; None if another broker is.

    The watch sees the next change of controller.
    """
    active = await store.exists(CONTROLLER, watch)
    if active is not None:
        return await _own_term(store) if active.ephemeral_owner == store.session_id else None
    epoch_node = await store.exists(CONTROLLER_EPOCH)
    if epoch_node is None:
        with contextlib.suppress(NodeExistsError):
            await store.create(CONTROLLER_EPOCH, encode_epoch(INITIAL_EPOCH))
        epoch_node = await store.get(CONTROLLER_EPOCH)
    epoch = decode_epoch(epoch_node.data) + 1
    try:
        await store.multi(
            [
                Create(CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True),
                SetData(CONTROLLER_EPOCH, encode_epoch(epoch), epoch_node.version),
            ]
        )
    except (NodeExistsError, BadVersionError):
        return None
    return Term(epoch, epoch_node.version + 1)


async def _own_term(store: MetadataStore) -> Term:
    node = await store.get(CONTROLLER_EPOCH)
    return Term(decode_epoch(node.data), node.version)


async def current_controller(store: MetadataStore) -> int | None:
    """Id of the controller, None if there is none."""
    node = await store.exists(CONTROLLER)
    return None if node is None else decode_controller(node.data)


class FencedStore:
    """Writes of one term: each transaction checks that the term has not ended."""

    def __init__(self, store: MetadataStore, term: Term, slices: Callable[[], Slices]) -> None:
        """Fence `store` by `term`."""
        self._store = store
        self._slices = slices
        self._check = Check(CONTROLLER_EPOCH, term.epoch_version)
        self._is_revoked = False

    def revoke(self) -> None:
        """Refuse all further writes, although the store would still accept them.

        A lost session ends the controllership but not the epoch: until another broker is elected,
        the fencing check would still pass for the former controller.
        """
        self._is_revoked = True

    def require(self) -> None:
        """Raises ControllerMovedError if the term was revoked."""
        if self._is_revoked:
            raise ControllerMovedError("the connection to the metadata store was interrupted")

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all operations or none. Raises ControllerMovedError, or the store's refusal."""
        return _checked((await self.write_many([operations]))[0])

    async def write_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do independent transactions. Raises ControllerMovedError if the term is over.

        They are sent in flights, which do not wait for each other's answers.
        """
        self.require()
        return await in_flights(transactions, self._fly, self._slices())

    async def _fly(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        self.require()
        outcomes = await self._store.multi_many([[self._check, *each] for each in transactions])
        unfenced: list[list[Result] | StoreError] = []
        for outcome in outcomes:
            if not isinstance(outcome, StoreError):
                unfenced.append(outcome[1:])
                continue
            if outcome.operation == 0 and isinstance(outcome, BadVersionError | NoNodeError):
                raise ControllerMovedError(str(outcome)) from outcome
            unfenced.append(outcome)
        return unfenced

    async def resign(self) -> None:
        """Remove `/controller`, unless a successor is elected already."""
        try:
            await self.write([Delete(CONTROLLER)])
        except (ControllerMovedError, NoNodeError):
            return


def _checked(outcome: list[Result] | StoreError) -> list[Result]:
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome
