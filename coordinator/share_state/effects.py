"""The effects of a decision about share state, which the broker carries out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from coordinator.effects import ShardEffects
from coordinator.share_state.records import ShareStateRecord
from coordinator.storage_errors import storage_error
from protocol.errors import ApiError

if TYPE_CHECKING:
    from coordinator.ports import Reply
    from protocol.errors import ErrorCode

AnswerT = TypeVar("AnswerT")


@dataclass(slots=True)
class ShareStateEffects(ShardEffects[ShareStateRecord]):
    """The outcome of one request."""

    @staticmethod
    def stored(
        record: ShareStateRecord, reply: Reply[ApiError | AnswerT], answer: AnswerT
    ) -> ShareStateEffects:
        """Append a record, and answer once it is committed."""
        effects = ShareStateEffects.told(reply, answer)
        effects.records.append(record)
        return effects

    @staticmethod
    def told(reply: Reply[ApiError | AnswerT], answer: AnswerT) -> ShareStateEffects:
        """Answer once the records replayed before are committed."""
        effects = ShareStateEffects()
        effects.answer_when_committed(reply, answer, _not_stored)
        return effects


def refusal(reply: Reply[ApiError | AnswerT], error: ApiError) -> ShareStateEffects:
    """Answer at once that it cannot be."""
    effects = ShareStateEffects()
    effects.answer(reply, error)
    return effects


def _not_stored(code: ErrorCode) -> ApiError:
    return ApiError(storage_error(code))
