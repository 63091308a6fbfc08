"""Waiting for several shards before one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from broker.runtime.deferred import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errors import ErrorCode

T = TypeVar("T")
U = TypeVar("U")


class Countdown(Generic[T]):
    """Builds the answer once everything expected has arrived and `close` was called.

    An exception from a listener or `respond` is the outcome instead.
    """

    __slots__ = ("_missing", "_respond", "deferred")

    def __init__(self, respond: Callable[[], T]) -> None:
        self.deferred: Deferred[T] = Deferred()
        self._respond: Callable[[], T] | None = respond
        self._missing = 1

    def expect(self, listener: Callable[[ErrorCode], object]) -> Callable[[ErrorCode], None]:
        """One more thing to wait for: the callback to hand to the party that brings it."""
        self._missing += 1

        def arrived(code: ErrorCode) -> None:
            try:
                listener(code)
            except Exception as error:  # noqa: BLE001 - delivered
                self.deferred.fail(error)
            self._arrived()

        return arrived

    def await_(self, deferred: Deferred[U], listener: Callable[[U], object]) -> None:
        """Wait for `deferred` too, and call `listener` with its value."""
        self._missing += 1

        def failed(error: Exception) -> None:
            self.deferred.fail(error)
            self._arrived()

        def arrived(value: U) -> None:
            try:
                listener(value)
            except Exception as error:  # noqa: BLE001 - delivered
                self.deferred.fail(error)
            self._arrived()

        deferred.then(arrived, failed)

    def close(self) -> None:
        """End the list of expected values."""
        self._arrived()

    def _arrived(self) -> None:
        self._missing -= 1
        if self._missing or self._respond is None:
            return
        respond, self._respond = self._respond, None  # whose owner holds this in turn
        try:
            self.deferred.complete(respond())
        except Exception as error:  # noqa: BLE001 - delivered
            self.deferred.fail(error)
