"""A warning that may come a thousand times a second, said once in a while."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging

    from broker.runtime.clock import Clock

INTERVAL_MS: Final = 60_000


class ThrottledLog:
    """Logs the first of some warnings, and then one a minute, with how many were left out."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._next_ms = -math.inf
        self._left_out = 0

    def warn(self, text: str) -> None:
        """Log `text`, or leave it out; from any thread."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._next_ms:
            self._left_out += 1
            return
        self._next_ms = now_ms + INTERVAL_MS
        left_out, self._left_out = self._left_out, 0
        if left_out:
            text = f"{text} ({left_out} more like this since the last line)"
        self._logger.warning("%s", text)
