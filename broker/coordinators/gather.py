"""Waiting for several shards before one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.errors import ErrorCode


class Gather:
    """Calls `finish` once everything expected has arrived and `close` was called."""

    __slots__ = ("_finish", "_missing")

    def __init__(self, finish: Callable[[], object]) -> None:
        self._finish: Callable[[], object] | None = finish
        self._missing = 1

    def expect(self, listener: Callable[[ErrorCode], object]) -> Callable[[ErrorCode], None]:
        """One more thing to wait for: the callback to hand to who brings it."""
        self._missing += 1

        def arrived(code: ErrorCode) -> None:
            listener(code)
            self._arrived()

        return arrived

    def close(self) -> None:
        """Nothing more will be expected."""
        self._arrived()

    def _arrived(self) -> None:
        self._missing -= 1
        if not self._missing and self._finish is not None:
            finish, self._finish = self._finish, None  # whose owner holds this in turn
            finish()
