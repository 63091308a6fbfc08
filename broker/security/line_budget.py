"""Limit on log lines of one kind per second, where strangers determine their number.

The rest is counted: the line at the limit says that more are left out, and the next second's first
line how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


class LineBudget:
    """Of one kind of line."""

    __slots__ = ("_key", "_left_out", "_lines", "_logger", "_max_lines", "_second", "_subject")

    def __init__(self, logger: Logger, subject: str, max_lines: int, key: str) -> None:
        """`max_lines` in a second, by the configuration `key`; `subject` begins its own lines."""
        self._logger = logger
        self._subject = subject
        self._max_lines = max_lines
        self._key = key
        self._second = 0
        self._lines = 0
        """Lines logged in this second."""
        self._left_out = 0

    def take(self, second: int) -> bool:
        """Count a line; whether it is to be written. `second` is of a monotonic clock."""
        if second != self._second:
            if self._left_out:
                self._logger.warning("%s: %d lines left out", self._subject, self._left_out)
            self._second, self._lines, self._left_out = second, 0, 0
        self._lines += 1
        if self._lines <= self._max_lines:
            return True
        if not self._left_out:
            text = "%s: the rest of this second is counted only (%s)"
            self._logger.warning(text, self._subject, self._key)
        self._left_out += 1
        return False
