"""A transaction coordinator for those who only ask it whether partitions are in transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.marker_sender import MarkerSender
from broker.coordinators.producer_id_blocks import ProducerIdBlocks
from broker.coordinators.transactions import TransactionCoordinators, TransactionRules
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.runtime.event_loop import BackgroundLoop

Key = tuple[str, int]
Answers = dict[Key, ErrorCode]


class Nobody:
    """No other broker."""

    look_ups = 0

    def partition_count(self) -> int:
        return 1

    def leader(self, topic: str, partition: int, since: int) -> int | None:
        return None

    def other_coordinator(self, partition: int) -> int | None:
        return None

    def add_partitions(self, broker_id: int, request: object, answered: object) -> None:
        raise AssertionError(f"nobody is broker {broker_id}")

    def write_markers(self, broker_id: int, request: object, answered: object) -> None:
        raise AssertionError(f"nobody is broker {broker_id}")

    def close(self) -> None:
        """Do nothing: nothing is open."""


class TransactionRegistry(TransactionCoordinators):
    """Coordinators that partition leaders ask; it answers at once, or on demand."""

    def __init__(self, rules: TransactionRules, loop: BackgroundLoop) -> None:
        sender = MarkerSender(Nobody(), loop.clock, loop.timers)
        super().__init__(rules, loop, ProducerIdBlocks(self._no_block), sender, Nobody())
        self.partitions: set[Key] = set()
        """Partitions in the transaction of any producer."""
        self.refusal = ErrorCode.NONE
        """Error code that replaces all answers."""
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

    async def _no_block(self) -> range:
        raise AssertionError("nobody asks for producer ids here")

    def _code(self, key: Key) -> ErrorCode:
        if self.refusal is not ErrorCode.NONE:
            return self.refusal
        return ErrorCode.NONE if key in self.partitions else ErrorCode.TRANSACTION_ABORTABLE
