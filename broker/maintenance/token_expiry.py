"""Removes expired delegation tokens. Only the controller does, for all brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from broker.runtime.clock import Clock
    from broker.runtime.timers import Cancellable, Timers
    from controller.security.delegation_tokens import DelegationTokens

NAME = "expire delegation tokens"


class TokenExpiry:
    """Removes them every `delegation.token.expiry.check.interval.ms`, and at once.

    Expired tokens that are still stored are not accepted.
    """

    def __init__(
        self,
        tokens: DelegationTokens,
        is_controller: Callable[[], bool],
        clock: Clock,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`spawn` owns the tasks; what fails is tried again after the next interval."""
        self._tokens = tokens
        self._is_controller = is_controller
        self._clock = clock
        self._timers = timers
        self._spawn = spawn
        self._series: Cancellable | None = None

    def start(self, interval_ms: int) -> None:
        """Begin."""
        self._look()
        self._series = self._timers.every(interval_ms, self._look)

    def stop(self) -> None:
        """End."""
        if self._series is not None:
            self._series.cancel()

    def _look(self) -> None:
        if self._is_controller():
            self._spawn(self._tokens.remove_expired(self._clock.now_ms()), NAME)
