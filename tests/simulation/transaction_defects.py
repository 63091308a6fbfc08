"""Mistakes that coordinators of transactions could have; `--transactions` must find each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.coordinators.group_shard_runtime import GroupShardRuntime
from broker.coordinators.shard_runtime import NO_PRODUCER
from coordinator.transactions import endings
from coordinator.transactions.effects import TransactionEffects
from coordinator.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.transactions.transaction import Transaction


def leave_the_decided() -> None:
    """A coordinator does not complete what an earlier one has decided."""
    TransactionShard.on_loaded = lambda _: TransactionEffects()  # type: ignore[method-assign, assignment]


def commit_positions_at_once() -> None:
    """Positions of a transaction count before it is committed."""
    apply = GroupShardRuntime.apply

    def apply_outside(self: GroupShardRuntime, record: Any, log_offset: int, _: int) -> None:
        apply(self, record, log_offset, NO_PRODUCER)

    GroupShardRuntime.apply = apply_outside  # type: ignore[method-assign, assignment]


def complete_without_positions() -> None:
    """Markers do not reach the positions of a group that has moved."""
    loaded = GroupShardRuntime.loaded

    def forget_pending(self: GroupShardRuntime, now_ms: int) -> Any:
        pending = self.groups._offsets.pending
        for producer_id in list(pending._by_producer):
            pending.take(producer_id)
        return loaded(self, now_ms)

    GroupShardRuntime.loaded = forget_pending  # type: ignore[method-assign]


def turn_commits_round() -> None:
    """Now and then a commit is carried out as an abort."""
    decide = endings.decide
    count = 0

    def decide_otherwise(known: Transaction | None, request: Any, *rest: Any) -> Any:
        nonlocal count
        count += 1
        return decide(known, request._replace(is_commit=request.is_commit and count % 20), *rest)

    endings.decide = decide_otherwise  # type: ignore[assignment]


TRANSACTION_DEFECTS: Final[dict[str, Callable[[], None]]] = {
    "decided transactions": leave_the_decided,
    "pending positions": commit_positions_at_once,
    "positions after a move": complete_without_positions,
    "decisions": turn_commits_round,
}
