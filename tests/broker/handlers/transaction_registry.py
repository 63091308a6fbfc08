"""A transaction coordinator for those who only ask it whether partitions are in transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

Key = tuple[str, int]
Answers = dict[Key, ErrorCode]


class TransactionRegistry:
    """What `broker.transactions` is to leaders of partitions; answers at once, or when told to."""

    def __init__(self) -> None:
        self.partitions: set[Key] = set()
        """In the transaction of whoever asks."""
        self.refusal = ErrorCode.NONE
        """What to say of everything instead."""
        self.questions: list[tuple[str, int, int, tuple[Key, ...], bool]] = []
        self.is_slow = False
        self._waiting: list[tuple[Answers, Callable[[Answers], None]]] = []

    def verify_or_add_partitions(  # noqa: PLR0913
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[Key],
        *,
        verify_only: bool,
        callback: Callable[[Answers], None],
    ) -> None:
        asked = tuple(partitions)
        self.questions.append((transactional_id, producer_id, producer_epoch, asked, verify_only))
        if not verify_only and self.refusal is ErrorCode.NONE:
            self.partitions.update(asked)
        answers = {key: self._code(key) for key in asked}
        if self.is_slow:
            self._waiting.append((answers, callback))
        else:
            callback(answers)

    def answer_all(self) -> None:
        """Give the answers that were held back."""
        waiting, self._waiting = self._waiting, []
        for answers, callback in waiting:
            callback(answers)

    def _code(self, key: Key) -> ErrorCode:
        if self.refusal is not ErrorCode.NONE:
            return self.refusal
        return ErrorCode.NONE if key in self.partitions else ErrorCode.TRANSACTION_ABORTABLE
