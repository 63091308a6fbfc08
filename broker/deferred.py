"""A value that arrives later, without a task: what a handler returns when it cannot answer yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_PENDING = object()


class Deferred(Generic[T]):
    """Completed at most once, by `complete`; one listener, set by `then`.

    `is_ordered_only` says that later requests of the same connection may be handled meanwhile
    (their answers still wait for this one); otherwise the connection rests until the value is
    there, as Apache Kafka's do for all requests. `abandon` tells that nobody waits any more.

    Who waits and who completes hold each other through it; once either has ended, it lets go of
    both, so that a request is freed with its answer and not by the collector of garbage cycles.
    """

    __slots__ = ("_listener", "_on_abandon", "_value", "is_ordered_only")

    def __init__(
        self, *, is_ordered_only: bool = False, on_abandon: Callable[[], None] | None = None
    ) -> None:
        self._value: object = _PENDING
        self._listener: Callable[[T], None] | None = None
        self._on_abandon = on_abandon
        self.is_ordered_only = is_ordered_only

    @property
    def is_complete(self) -> bool:
        """Whether the value has arrived."""
        return self._value is not _PENDING

    def complete(self, value: T) -> bool:
        """Deliver the value; returns False, and changes nothing, when one was delivered before."""
        if self._value is not _PENDING:
            return False
        self._value = value
        self._on_abandon = None
        listener, self._listener = self._listener, None
        if listener is not None:
            listener(value)
        return True

    def then(self, listener: Callable[[T], None]) -> None:
        """Call `listener` with the value: now if it is there, else when it comes."""
        assert self._listener is None
        if self._value is _PENDING:
            self._listener = listener
        else:
            listener(cast("T", self._value))

    @property
    def value(self) -> T:
        """The value; only once complete."""
        assert self._value is not _PENDING
        return cast("T", self._value)

    def abandon(self) -> None:
        """The requester is gone: forget the listener and let the completer free what it holds."""
        self._listener = None
        on_abandon, self._on_abandon = self._on_abandon, None
        if on_abandon is not None:
            on_abandon()
