"""Reasons why connections were closed, a line each: failed log-ins and handshakes, invalid frames.

Their number is up to strangers, so it is bounded (`LineBudget`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.security.line_budget import LineBudget

if TYPE_CHECKING:
    from broker.runtime.clock import Clock

KEY = "connection.log.max.lines.per.second"
SECOND_MS = 1000

logger = logging.getLogger(__name__)


class ClosureLog:
    """Of all connections of a broker."""

    __slots__ = ("_budget", "_clock")

    def __init__(self, clock: Clock, max_lines_per_second: int) -> None:
        self._clock = clock
        self._budget = LineBudget(logger, "connections closed", max_lines_per_second, KEY)

    def tell(self, address: str, reason: str) -> None:
        """Write a line, unless there were too many in this second."""
        if self._budget.take(self._clock.monotonic_ms() // SECOND_MS):
            logger.warning("%s: connection closed: %s", address, reason)
