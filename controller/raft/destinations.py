"""Servers of the quorum by address, and pauses after answers of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Address = tuple[str, int]

FIRST_RECONNECT_MS: Final = 50
LONGEST_RECONNECT_MS: Final = 500
"""A server that cannot be reached is tried again after the first, then after twice as long."""


class Destinations:
    """The bootstrap servers, one of which is drawn at a time, and the pauses of all servers."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        retry_backoff_ms: int,
        draw_below: Callable[[int], int],
    ) -> None:
        """`draw_below(n)` draws from [0, n)."""
        assert bootstrap, "there is no way to find the quorum"
        self._bootstrap = tuple(bootstrap)
        self._retry_backoff_ms = retry_backoff_ms
        self._draw_below = draw_below
        self._until_ms: dict[Address, int] = {}
        self._failures: dict[Address, int] = {}

    def refused(self, address: Address, now_ms: int) -> None:
        """The server answered, and not with what was asked for."""
        self._failures.pop(address, None)
        self._until_ms[address] = now_ms + self._retry_backoff_ms

    def failed(self, address: Address, now_ms: int) -> None:
        """The server did not answer."""
        failures = self._failures.get(address, 0)
        self._failures[address] = failures + 1
        pause_ms = min(FIRST_RECONNECT_MS << min(failures, 10), LONGEST_RECONNECT_MS)
        self._until_ms[address] = now_ms + pause_ms

    def answered(self, address: Address) -> None:
        """The server is of use; so it is when it turns out to lead."""
        self._failures.pop(address, None)
        self._until_ms.pop(address, None)

    def is_paused(self, address: Address, now_ms: int) -> bool:
        """Return whether the server is not to be asked yet."""
        return self._until_ms.get(address, now_ms) > now_ms

    def any_bootstrap(self, now_ms: int) -> Address | None:
        """One that is not to be left alone, drawn by lot."""
        ready = [one for one in self._bootstrap if not self.is_paused(one, now_ms)]
        return ready[self._draw_below(len(ready))] if ready else None

    def next_bootstrap_ms(self) -> int:
        """Return the end of the first pause of a bootstrap server; all of them have one."""
        return min(self._until_ms[one] for one in self._bootstrap)
