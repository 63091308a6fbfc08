"""The effects of a decision, which the broker carries out in this order: append, replay, answer."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from coordinator.records import OffsetsRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.ports import Reply
    from protocol.errors import ErrorCode

RecordT = TypeVar("RecordT")
ResultT = TypeVar("ResultT")


class Answer(NamedTuple):
    """A reply and its response."""

    reply: Reply[Any]
    response: Any


class CommittedAnswer(NamedTuple):
    """One reply whose response is valid only once everything appended so far is committed."""

    reply: Reply[Any]
    response: Any
    refuse: Callable[[ErrorCode], Any]
    """Makes the response to give instead when the append, or its replication, fails."""


class ProducerIdentity(NamedTuple):
    """A producer as its batches name it."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class ShardEffects(Generic[RecordT]):
    """The outcome of one request or one timer, in any kind of shard.

    The broker appends `records` as one batch and replays them; then gives `answers`; then, when the
    shard's log is committed up to here, `committed_answers`. If the append fails nothing is
    replayed, `committed_answers` are refused and `on_append_failed` returns further effects.
    """

    producer: ProducerIdentity | None = None
    """Producer whose transaction the records are part of, if any."""
    answers: list[Answer] = field(default_factory=list)
    committed_answers: list[CommittedAnswer] = field(default_factory=list)
    records: list[RecordT] = field(default_factory=list)
    on_append_failed: Callable[[ErrorCode, int], ShardEffects[RecordT]] | None = None
    """Takes the error and `now_ms`."""
    on_replayed: Callable[[int], ShardEffects[RecordT]] | None = None
    """Takes `now_ms`; returns the effects that follow from the replayed records, after the
    answers."""

    def answer(self, reply: Reply[Any], response: object) -> None:
        """Give `response` as soon as the records are appended."""
        self.answers.append(Answer(reply, response))

    def answer_when_committed(
        self, reply: Reply[Any], response: object, refuse: Callable[[ErrorCode], Any]
    ) -> None:
        """Give `response` once the log is committed up to here, or `refuse(error)`."""
        self.committed_answers.append(CommittedAnswer(reply, response, refuse))


@dataclass(slots=True)
class Effects(ShardEffects[OffsetsRecord]):
    """The outcome of one request or one timer of groups."""

    jobs: list[Steps[None]] = field(default_factory=list)
    """Work that may be long. The broker takes its steps one by one, after everything else, also if
    the append failed; it carries out the effects of a step before it takes the next."""


Steps = Generator["Effects | None", None, ResultT]
"""The steps of a piece of work; between two of them others are served."""
