"""A value that arrives later, without a task: a handler returns it when it cannot answer yet.

This is the broker's one way to say "later". The result of a thread, of a wait for a commit or for
another broker, or of a coroutine reaches the handler as a `Deferred`, and so does its error:

    complete(value)    the value is there
    fail(error)        there will be none: dispatch answers it as an error that a handler raises
    map(function)      a Deferred of function(value); what `function` raises fails that one
    guard(callback)    a callback for a timer or a waiter list; what it raises fails this one

An error therefore ends up with the client whose request it concerns, never with the party that
completes: `complete` and `fail` raise nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from protocol.errors import ApiError, detached

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator


class HangUp(Exception):  # noqa: N818  (an order, not an error)
    """Raised by a handler that can only end the connection; the text is logged."""


FORESEEN = (ApiError, HangUp)
"""Errors caused by clients: their tracebacks are irrelevant."""

T = TypeVar("T")
U = TypeVar("U")
_PENDING = object()

logger = logging.getLogger(__name__)


class AbandonedError(Exception):
    """The work behind a Deferred was cancelled: the broker stops."""


CANCELLED = "cancelled: the broker stops"


class Deferred(Generic[T]):
    """Settled at most once, by `complete` or `fail`; one listener, set by `then`.

    `is_ordered_only` says that later requests of the same connection may be handled in the meantime
    (their answers still wait for this one); otherwise the connection rests until it is settled, as
    Apache Kafka's do for all requests. `is_unserved` says that the request has yet to be served,
    even if its client leaves meanwhile, as one may that expects no answer (acks=0). `abandon` says
    that the requester no longer waits.

    The waiting and the completing side hold each other through it; once either has ended, it
    releases both, so that a request is freed with its answer and not by the cyclic collector.
    """

    __slots__ = (
        "_error",
        "_listener",
        "_on_abandon",
        "_on_error",
        "_value",
        "is_ordered_only",
        "is_unserved",
    )

    def __init__(
        self,
        *,
        is_ordered_only: bool = False,
        is_unserved: bool = False,
        on_abandon: Callable[[], None] | None = None,
    ) -> None:
        self._value: object = _PENDING
        self._error: Exception | None = None
        self._listener: Callable[[T], None] | None = None
        self._on_error: Callable[[Exception], object] | None = None
        self._on_abandon = on_abandon
        self.is_ordered_only = is_ordered_only
        self.is_unserved = is_unserved

    @property
    def is_complete(self) -> bool:
        """True if the value or an error has arrived."""
        return self._value is not _PENDING

    def complete(self, value: T) -> bool:
        """Deliver the value; returns False, and changes nothing, when settled before."""
        if self._value is not _PENDING:
            return False
        self._value = value
        self._on_abandon = self._on_error = None
        listener, self._listener = self._listener, None
        if listener is not None:
            _call(listener, value)
        return True

    def fail(self, error: Exception) -> bool:
        """Deliver an error instead of a value; returns False when settled before."""
        if self._value is not _PENDING:
            return False
        self._value = None
        if isinstance(error, FORESEEN):
            detached(error)
        self._error = error
        self._on_abandon = self._listener = None
        on_error, self._on_error = self._on_error, None
        if on_error is not None:
            _call(on_error, error)
        return True

    def then(self, listener: Callable[[T], None], on_error: Callable[[Exception], object]) -> None:
        """Call `listener` with the value, or `on_error` with the error: now, or when it comes.

        The end of a chain: neither may raise, and if one does all the same, that is logged and
        goes no further. What computes something from the value belongs into `map`.
        """
        assert self._listener is None
        if self._value is _PENDING:
            self._listener = listener
            self._on_error = on_error
        elif self._error is not None:
            _call(on_error, self._error)
        else:
            _call(listener, cast("T", self._value))

    def map(self, function: Callable[[T], U | Deferred[U]]) -> Deferred[U]:
        """Result of `function` on the value; if that is a Deferred in turn, the result of that.

        The two refer to each other until one ends: map a Deferred in flight, and as the last step.
        """
        mapped: Deferred[U] = Deferred(
            is_ordered_only=self.is_ordered_only,
            is_unserved=self.is_unserved,
            on_abandon=self.abandon,
        )

        def deliver(value: T) -> None:
            try:
                made = function(value)
            except Exception as error:  # noqa: BLE001 - it goes on to the listener of `mapped`
                mapped.fail(error)
                return
            if isinstance(made, Deferred):
                mapped.follow(made)
            else:
                mapped.complete(made)

        self.then(deliver, mapped.fail)
        return mapped

    def follow(self, other: Deferred[T]) -> None:
        """Be settled as `other` is, and abandon it when this one is abandoned, or was before."""
        if self._on_abandon is _was_abandoned:
            other.abandon()
            return
        if self._value is _PENDING:
            self._on_abandon = other.abandon
            self.is_unserved = other.is_unserved
        other.then(self.complete, self.fail)  # type: ignore[arg-type] # a bool is of no interest

    def guard(self, callback: Callable[..., object]) -> Callable[..., None]:
        """Wrap `callback` so that an exception from it fails this Deferred."""

        def guarded(*arguments: object) -> None:
            try:
                callback(*arguments)
            except Exception as error:  # noqa: BLE001 - delivered
                self.fail(error)

        return guarded

    @property
    def value(self) -> T:
        """The value; only once complete. Raises the error if that came instead."""
        assert self._value is not _PENDING
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def abandon(self) -> None:
        """Forget the listener and let the completer free its state: the requester is gone."""
        self._listener = self._on_error = None
        on_abandon, self._on_abandon = self._on_abandon, _was_abandoned
        if on_abandon is not None:
            try:
                on_abandon()
            except Exception:
                logger.exception("waiting request could not be cancelled")


def _was_abandoned() -> None:
    """Stands where the completer's callback was, once the requester is gone."""


def from_future(future: asyncio.Future[T]) -> Deferred[T]:
    """Result of a future; AbandonedError if it is cancelled, as its owner does in the end."""
    deferred: Deferred[T] = Deferred()
    future.add_done_callback(lambda done: settle(deferred, done))
    return deferred


async def awaited(deferred: Deferred[T]) -> T:
    """Wait for its value, or raise its error; for a task of the broker's, as no request has one."""
    arrived: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def complete(value: T) -> None:
        if not arrived.done():  # the waiter may have been cancelled
            arrived.set_result(value)

    def fail(error: Exception) -> None:
        if not arrived.done():
            arrived.set_exception(error)

    deferred.then(complete, fail)
    return await arrived


def settle(deferred: Deferred[T], done: asyncio.Future[T]) -> None:
    """Settle `deferred` as a future was that is done."""
    if done.cancelled():
        deferred.fail(AbandonedError(CANCELLED))
        return
    error = done.exception()
    if error is None:
        deferred.complete(done.result())
    elif isinstance(error, Exception):
        deferred.fail(error)
    else:
        raise error


@contextlib.contextmanager
def errors_to(deferred: Deferred[Any]) -> Iterator[None]:
    """Fail `deferred` with an exception from the block, which goes no further.

    A cancellation fails it with AbandonedError, and is raised again: if only the awaitable within
    was cancelled, the task itself ends well (`Supervision.spawn`), and nothing else would settle
    it.
    """
    try:
        yield
    except asyncio.CancelledError:
        deferred.fail(AbandonedError(CANCELLED))
        raise
    except Exception as error:  # noqa: BLE001 - delivered
        deferred.fail(error)


def fail_if_cancelled(deferred: Deferred[Any], task: asyncio.Task[object]) -> None:
    """Fail `deferred` with AbandonedError if its task is cancelled before it has begun."""

    def ended(done: asyncio.Task[object]) -> None:
        if done.cancelled():
            deferred.fail(AbandonedError(CANCELLED))

    task.add_done_callback(ended)


def _call(listener: Callable[[Any], object], argument: object) -> None:
    try:
        listener(argument)
    except Exception:
        logger.exception("listener %r of a deferred answer failed", listener)


def in_background(
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
    work: Coroutine[Any, Any, T],
    name: str,
    *,
    is_unserved: bool = False,
) -> Deferred[T]:
    """Result of `work`, or its exception; it is cancelled once the Deferred is abandoned.

    `spawn` owns the task (`Supervision.spawn`).
    """

    async def run() -> None:
        with errors_to(deferred):
            deferred.complete(await work)

    task = spawn(run(), name)
    task.add_done_callback(lambda _: work.close())  # for one cancelled before it began

    def cancel() -> None:
        task.cancel()

    deferred: Deferred[T] = Deferred(is_unserved=is_unserved, on_abandon=cancel)
    fail_if_cancelled(deferred, task)
    return deferred
