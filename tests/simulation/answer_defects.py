"""Mistakes between a request and its answer; the simulation must find each of them."""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from typing import TYPE_CHECKING, Any

from broker.handlers.records.delayed_fetch import DelayedFetch
from broker.handlers.records.produce import DelayedProduce
from broker.network import frame_buffer
from broker.network.connection import Connection
from broker.network.send_queue import SendQueue
from broker.partitions.commit_waiters import CommitWaiter, CommitWaiters
from broker.partitions.looks_in_turn import LooksInTurn
from broker.runtime.deferred import Deferred
from protocol.errors import ErrorCode
from storage.append import leader_appends
from storage.log import epoch_recovery
from storage.producer.producer_state import ProducerState
from tests.simulation.machine.sockets import End

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.partitions.looks_in_turn import Look

OFTEN = 50
"""Every so many answers are treated wrongly."""


def keep_no_bytes() -> None:
    """A request that waits does not own its bytes: its connection goes on reading into them."""
    frame_buffer._OWN_REFERENCES = sys.maxsize


def stop_at_a_look_that_raises() -> None:
    """A fetch that waits and whose look fails ends the turn in which the others have theirs."""
    look = DelayedFetch.look
    count = 0

    def look_and_raise(self: DelayedFetch) -> Look:
        nonlocal count
        count += 1
        _raise_if_reset(lambda: deque(look(self), maxlen=0))
        if count % OFTEN == 0:
            raise ConnectionResetError
        yield 0

    def look_until_one_raises(self: LooksInTurn) -> None:
        due, self._due = self._due, {}
        self._is_scheduled = False
        with contextlib.suppress(ConnectionError):
            for looker in due:
                deque(looker.look(), maxlen=0)

    DelayedFetch.look = look_and_raise  # type: ignore[method-assign]
    LooksInTurn._look = look_until_one_raises  # type: ignore[method-assign]


def stop_at_a_commit_waiter_that_raises() -> None:
    """A producer whose connection was reset keeps the others from hearing of their commits."""
    complete = CommitWaiters.complete

    def call_and_raise(self: CommitWaiters, waiter: CommitWaiter, code: ErrorCode) -> None:
        callback, waiter.callback = waiter.callback, None
        if callback is not None:
            _raise_if_reset(lambda: callback(code))

    def complete_until_one_raises(self: CommitWaiters, high_watermark: int, code: Any) -> None:
        with contextlib.suppress(ConnectionError):
            complete(self, high_watermark, code)

    CommitWaiters._call = call_and_raise  # type: ignore[method-assign]
    CommitWaiters.complete = complete_until_one_raises  # type: ignore[method-assign]


def _raise_if_reset(call: Callable[[], object]) -> None:
    """Let the error of a socket climb, as it does where nobody catches it."""
    before = End.broken_sends
    call()
    if End.broken_sends > before:
        raise ConnectionResetError


def answer_twice() -> None:
    """Some answers are sent again."""
    add = SendQueue.add
    count = 0

    def add_again(self: SendQueue, parts: list[Any]) -> None:
        nonlocal count
        count += 1
        add(self, parts)
        if count % OFTEN == 0:
            add(self, parts)

    SendQueue.add = add_again  # type: ignore[method-assign]


def answer_in_any_order() -> None:
    """Answers that are there leave before those that requests before theirs wait for."""
    take = Connection._take_answer

    def send_at_once(self: Connection, answer: Any) -> None:
        if isinstance(answer, Deferred):
            take(self, answer)
        else:
            self._outgoing.add(answer)

    Connection._take_answer = send_at_once  # type: ignore[method-assign]


def leave_errors_unanswered() -> None:
    """A produce that waits is not answered when its leader is deposed."""
    settle = DelayedProduce._settle

    def settle_without_errors(
        self: DelayedProduce, topic: str, answer: Any, code: ErrorCode
    ) -> None:
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._forget()
        else:
            settle(self, topic, answer, code)

    DelayedProduce._settle = settle_without_errors  # type: ignore[method-assign]


def take_some_for_all() -> None:
    """Of a region that was sent in part, the rest is left out."""
    skip = SendQueue._skip

    def skip_all(self: SendQueue, rest: Any, count: int) -> None:
        skip(self, rest, rest.length)

    SendQueue._skip = skip_all  # type: ignore[method-assign]


def know_no_duplicates() -> None:
    """A batch that a producer sends again is appended again."""
    ProducerState.check = lambda self, header, source: None  # type: ignore[method-assign]


def know_one_batch_after_a_start() -> None:
    """A producer with several requests under way is out of order when it sends them again."""
    leader_appends.recall = lambda *_: False  # type: ignore[attr-defined]
    leader_appends.find_repeated = lambda *_: None  # type: ignore[attr-defined]


def believe_the_epoch_file() -> None:
    """Leader epochs after a power failure are what the file says, whatever the batches say."""
    epoch_recovery.first_contradiction = lambda *_: None


ANSWER_DEFECTS: dict[str, Callable[[], None]] = {
    "ownership of bytes": keep_no_bytes,
    "watchers": stop_at_a_look_that_raises,
    "commit waiters": stop_at_a_commit_waiter_that_raises,
    "answers twice": answer_twice,
    "order of answers": answer_in_any_order,
    "errors of answers": leave_errors_unanswered,
    "regions": take_some_for_all,
    "duplicates": know_no_duplicates,
    "batches after a start": know_one_batch_after_a_start,
    "epochs after a power failure": believe_the_epoch_file,
}
