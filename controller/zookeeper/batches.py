"""Batches independent transactions into few large ones: ZooKeeper syncs its disk for each.

A refused batch did nothing, so its transactions are then sent one by one, and each gets its own
outcome. Only a refusal by the check that all of them share (the controller's fence) is the outcome
of all.

Worked example: three transactions that begin with the same check become one of four operations.

    [check, create a]  [check, create b]  [check, set c]   ->   [check, create a, create b, set c]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.metadata_store.store import Check, Create, Operation, Result, SetData

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OPERATIONS_LIMIT = 250
"""Fixed: ZooKeeper carries a batch out as one request, before those of other sessions."""
BYTES_LIMIT = 256 * 1024
"""A quarter of ZooKeeper's default limit for a request (`jute.maxbuffer`)."""

OPERATION_BYTES = 80
"""Bytes of an operation beside its path and data: headers, access list."""


@dataclass(slots=True)
class Batch:
    """Transactions sent as one."""

    check: Check | None
    """The check that all of them begin with, kept once."""
    transactions: list[Sequence[Operation]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    size_in_bytes: int = 0

    def has_room_for(self, operations: Sequence[Operation], size_in_bytes: int) -> bool:
        """Return whether the batch has room for a transaction."""
        return (
            len(self.operations) + len(operations) <= OPERATIONS_LIMIT
            and self.size_in_bytes + size_in_bytes <= BYTES_LIMIT
        )

    def add(self, operations: Sequence[Operation], size_in_bytes: int) -> None:
        """Append a transaction."""
        is_first = not self.transactions
        own = operations if self.check is None or is_first else operations[1:]
        self.transactions.append(operations)
        self.operations.extend(own)
        self.size_in_bytes += size_in_bytes

    def split(self, results: Sequence[Result]) -> list[list[Result]]:
        """The results of the batch, distributed to its transactions."""
        dealt: list[list[Result]] = []
        position = 0
        for index, operations in enumerate(self.transactions):
            is_check_left_out = self.check is not None and index > 0
            count = len(operations) - is_check_left_out
            own = list(results[position : position + count])
            dealt.append([None, *own] if is_check_left_out else own)
            position += count
        return dealt


def gather(transactions: Iterable[Sequence[Operation]]) -> list[Batch]:
    """Batch consecutive transactions that begin with the same check, or with none."""
    batches: list[Batch] = []
    for operations in transactions:
        first = operations[0] if operations else None
        check = first if isinstance(first, Check) else None
        size = size_in_bytes(operations)
        last = batches[-1] if batches else None
        if last is None or last.check != check or not last.has_room_for(operations, size):
            batches.append(Batch(check))
        batches[-1].add(operations, size)
    return batches


def size_in_bytes(operations: Iterable[Operation]) -> int:
    """The size of a request of these operations, within a few bytes for each."""
    return sum(map(_size, operations))


def _size(operation: Operation) -> int:
    data = operation.data if isinstance(operation, Create | SetData) else None
    return OPERATION_BYTES + len(operation.path) + len(data or b"")
