"""A fetch that waits for more records on its partitions, or for `max_wait_ms` to pass.

One with many partitions looks at them, watches them and lets them go in pieces, as a session may
have a hundred thousand; see `looks_in_turn`.

A follower's fetch that could be answered is held back a little longer while producers are busy, so
that one answer carries several appends (decision 25).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from broker.partitions.looks_in_turn import WATCHED_AT_ONCE
from broker.runtime.deferred import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.fetch.fetch_sessions import FetchSession
    from broker.fetch.follower_batching import FollowerBatching
    from broker.partitions.looks_in_turn import Look, LooksInTurn
    from broker.partitions.partition import Partition
    from broker.requests.steps import Steps
    from broker.runtime.timers import Cancellable, Timers
    from protocol.messages.fetch import FetchResponse

HOLD_MS: Final = 4
"""Longest that a follower's fetch is held back. Fixed: less than a Java producer's linger."""
ENOUGH_NEWS: Final = 4
"""Further appends that end it early. Fixed: a Java producer has five requests in flight."""
READ_AT_ONCE: Final = WATCHED_AT_ONCE
"""Partitions of a fetch that are looked at together."""
UNWATCHED_AT_ONCE: Final = 2000
"""Partitions unwatched at once: a third of a microsecond each."""
ENOUGH_BYTES: Final = 64 * 1024
"""Answers of this size are never held back: the follower is catching up."""


class Read(Protocol):
    """One fetch request's pass over its partitions, which can be repeated."""

    is_by_follower: bool

    @property
    def is_satisfied(self) -> bool:
        """True if the response is due."""

    @property
    def session(self) -> FetchSession | None:
        """The session that the request belongs to, if any."""

    @property
    def is_large(self) -> bool:
        """True if it has more partitions than `READ_AT_ONCE`, at present."""

    def run(self) -> None:
        """Read all partitions again."""

    def run_in_steps(self) -> Steps[None]:
        """As `run`, pausing after each partition."""

    def watched(self) -> Iterable[Partition]:
        """The partitions whose growth can satisfy the request."""

    def answered(self) -> FetchResponse | Deferred[FetchResponse]:
        """Response from the last pass."""


class DelayedFetch:
    """Waits no longer than `max_wait_ms`; a follower's may be held back although it has records."""

    __slots__ = (
        *("_hold", "_is_look_due", "_is_over", "_is_time_over", "_is_to_watch", "_looks", "_news"),
        *("_pace", "_read", "_timer", "_timers", "_watched", "deferred"),
    )

    def __init__(
        self,
        timers: Timers,
        looks: LooksInTurn,
        read: Read,
        max_wait_ms: int,
        *,
        is_held: bool = False,
    ) -> None:
        """`is_held`: there are records to answer with, and the answer is held back all the same.

        Of a large read nothing is watched yet: call `look_again`.
        """
        self.deferred: Deferred[FetchResponse] = Deferred(on_abandon=self._forget)
        self._looks = looks
        self._read = read
        self._timers = timers
        self._is_look_due = False
        self._is_over = False
        self._is_time_over = False
        self._is_to_watch = False
        self._pace: FollowerBatching | None = None
        self._hold: Cancellable | None = None
        self._news = 0
        self._watched: dict[Partition, None] = {}
        if not read.is_large:
            self._watch_all()
        session = read.session
        if session is not None:
            session.waiting = self
            if read.is_by_follower:
                self._pace = session.pace
        self._timer = timers.schedule(max_wait_ms, partial(self._guarded, self._expire))
        if is_held:
            self._hold_back()

    def check(self) -> None:
        """Read again, and answer if there is enough; for a consumer once for all growth.

        A follower is answered with the first growth. A fetch that is over may still watch some
        partitions, and must not be read again: its session would take that as sent.
        """
        if self._is_over:
            return
        if self._read.is_by_follower:
            self._guarded(self._check)
        else:
            self._looks.add(self)

    def look(self) -> Look:
        """Read again, and answer if there is enough or the wait is over."""
        try:
            if self._is_to_watch:
                self._is_to_watch = False
                for _ in self._watch():
                    yield 1
            if not self._read.is_large:
                count = len(self._watched)
                self._read_now()
                yield count
                return
            for _ in self._read.run_in_steps():
                yield 1
            self._judge()
        except Exception as error:  # noqa: BLE001 - delivered
            self._fail(error)

    def _check(self) -> None:
        if self._hold is not None:
            self._news += 1
            if self._news >= ENOUGH_NEWS:
                self._release()
        elif self._pace is not None and self._pace.is_worthwhile():
            self._hold_back()
        else:
            self._answer()

    def look_again(self) -> None:
        """Idle partitions have woken: read once, after all that wake in this turn."""
        if not self._is_look_due:
            self._is_look_due = True
            self._timers.soon(partial(self._guarded, self._look))

    def _look(self) -> None:
        self._is_look_due = False
        if self._is_over:
            return
        if self._read.is_large:
            self._is_to_watch = True
        else:
            self._watch_all()
        self._check()

    def _watch_all(self) -> None:
        for _ in self._watch():
            pass

    def _watch(self) -> Steps[None]:
        for partition in self._read.watched():
            self._watched[partition] = None
            if self._read.is_by_follower:
                partition.watch_as_follower(self)
            else:
                partition.watch(self)
            yield

    def _hold_back(self) -> None:
        self._news = 0
        self._hold = self._timers.schedule(HOLD_MS, partial(self._guarded, self._release))

    def _release(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None and self._pace is not None:
            hold.cancel()
            self._pace.note(has_gained=self._news > 0)
        self._answer()

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step; an error that it raises is the answer, and does not reach the caller."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - delivered
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._forget()
        self.deferred.fail(error)

    def _answer(self) -> None:
        """Read again and answer, if there is enough: now, or in turn if the read is large."""
        if self._read.is_large:
            self._looks.add(self)
        else:
            self._read_now()

    def _read_now(self) -> None:
        self._read.run()
        self._judge()

    def _expire(self) -> None:
        self._is_time_over = True
        self._answer()

    def _judge(self) -> None:
        if not (self._is_time_over or self._read.is_satisfied):
            return
        self._forget()
        answer = self._read.answered()
        if isinstance(answer, Deferred):
            self.deferred.follow(answer)
        else:
            self.deferred.complete(answer)

    def _forget(self) -> None:
        self._is_over = True
        self._timer.cancel()
        self._looks.drop(self)
        if self._hold is not None:
            self._hold.cancel()
        session = self._read.session
        if session is not None and session.waiting is self:
            session.waiting = None
        self._unwatch()

    def _unwatch(self) -> None:
        """Watch nothing more: some partitions now, and if there are others, these soon."""
        for _ in range(min(UNWATCHED_AT_ONCE, len(self._watched))):
            partition, _ = self._watched.popitem()
            partition.unwatch(self)
        if self._watched:
            self._timers.soon(self._unwatch)
