"""Mistakes that delivery could have; seeds with `--delays` must find each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.delivery import followed_log
from broker.delivery.due_batch import DueBatch
from broker.delivery.relay_plan import RelayPlan
from broker.delivery.waiting_queue import Waiting
from broker.delivery.waiting_records import WaitingRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EARLY_MS: Final = 400


def deliver_early() -> None:
    """A record is taken for due before its time."""
    gather = DueBatch.gather

    def gather_early(self: DueBatch, log: Any, now_ms: int) -> Any:
        return gather(self, log, now_ms + EARLY_MS)

    DueBatch.gather = gather_early  # type: ignore[method-assign]


def forget_what_was_delivered() -> None:
    """A new leader does not ask the log how far delivery has come."""
    begin = WaitingRecords.__init__

    def begin_anew(self: WaitingRecords, *parts: Any) -> None:
        begin(self, *parts)
        self.delivered = Waiting(-1, -1)

    WaitingRecords.__init__ = begin_anew  # type: ignore[method-assign, assignment]


def forget_what_waits() -> None:
    """A new leader knows only what it has appended itself."""
    follow = WaitingRecords.follow

    def follow_new(self: WaitingRecords, entry: Any, delays: Any) -> Iterator[None]:
        first = vars(self).setdefault("first", delays._offsets.log_end_offset)
        if entry.offset >= first:
            yield from follow(self, entry, delays)

    WaitingRecords.follow = follow_new  # type: ignore[method-assign]


def forget_cancellations() -> None:
    """Deliver cancelled records all the same."""
    followed_log.FollowedLog.is_gone = lambda self, offset: False  # type: ignore[method-assign]


def forget_the_relay() -> None:
    """A new leader sends all dead letters, as a new producer."""
    begin = RelayPlan.__init__

    def begin_anew(self: RelayPlan, *parts: Any) -> None:
        begin(self, None, *parts[1:])

    RelayPlan.__init__ = begin_anew  # type: ignore[method-assign, assignment]


DELAY_DEFECTS: Final[dict[str, Callable[[], None]]] = {
    "early deliveries": deliver_early,
    "repeated deliveries": forget_what_was_delivered,
    "lost deliveries": forget_what_waits,
    "lost cancellations": forget_cancellations,
    "repeated dead letters": forget_the_relay,
}
