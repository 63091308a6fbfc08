"""ListTransactions and DescribeTransactions, for administration tools (KIP-664, KIP-994)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.patterns import Pattern
from coordinator.transactions.states import STATES_BY_NAME
from protocol.errors import ErrorCode
from protocol.messages.producers import DescribeTransactionsResponse, ListTransactionsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coordinator.transactions.states import TransactionState
    from coordinator.transactions.transaction import Transaction
    from protocol.messages.producers import ListTransactionsRequest

Description = DescribeTransactionsResponse.TransactionState


class Filters(NamedTuple):
    """The filters of a ListTransactions; see `read_filters`."""

    states: frozenset[TransactionState] | None
    """None admits all, an empty set none."""
    producer_ids: frozenset[int]
    """Empty admits all."""
    duration_ms: int
    """Only those that began longer ago; negative admits all."""
    pattern: Pattern | None
    """A pattern that the whole transactional id must match."""

    def let_pass(self, transaction: Transaction, now_ms: int) -> bool:
        """Return whether the filters admit a transaction. Raises INVALID_REGULAR_EXPRESSION.

        It raises for a large pattern with a long id, which would take long to match.
        """
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states is not None and transaction.state not in self.states:
            return False
        if self.duration_ms >= 0 and now_ms - transaction.started_ms <= self.duration_ms:
            return False
        return self.pattern is None or self.pattern.matches(transaction.transactional_id)


def read_filters(request: ListTransactionsRequest, longest_pattern: int) -> Filters:
    """The filters of a request. Raises INVALID_REGULAR_EXPRESSION."""
    pattern = None
    if request.transactional_id_pattern:
        pattern = Pattern(request.transactional_id_pattern, longest_pattern)
    states = frozenset(
        STATES_BY_NAME[name] for name in request.state_filters if name in STATES_BY_NAME
    )
    return Filters(
        states=states if request.state_filters else None,
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms=request.duration_filter,
        pattern=pattern,
    )


def unknown_states(request: ListTransactionsRequest) -> list[str]:
    """Return the names in the state filter that are not states."""
    return [name for name in dict.fromkeys(request.state_filters) if name not in STATES_BY_NAME]


def listed(
    transactions: Iterable[Transaction], filters: Filters, now_ms: int
) -> Iterator[ListTransactionsResponse.TransactionState | None]:
    """The transactions that the filters admit, and None for each other one."""
    for transaction in transactions:
        if not filters.let_pass(transaction, now_ms):
            yield None
            continue
        yield ListTransactionsResponse.TransactionState(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            transaction_state=transaction.state.shown,
        )


def described(transaction: Transaction) -> Description:
    """One transaction with its partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return Description(
        error_code=ErrorCode.NONE,
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.shown,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            Description.Topic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic.items()
        ],
    )


def not_described(transactional_id: str, error: ErrorCode) -> Description:
    """The answer with an error for a transactional id."""
    return Description(
        error_code=error,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )
