"""Delay of responses to a follower, so that each has more records."""

from __future__ import annotations

LONGEST_PAUSE = 127
"""Responses sent at once, when holding them back gains nothing, until it is tried again."""


class FollowerBatching:
    """Decides whether to hold back responses to one follower: as long as that pays.

    It pays if one response has the records of several requests, which is so while producers keep
    several under way. A producer that waits for each of its records would only wait longer, so
    after tries without gain, the next ones are ever rarer.
    """

    __slots__ = ("_left", "_pause")

    def __init__(self) -> None:
        self._pause = 0
        self._left = 0

    def is_worthwhile(self) -> bool:
        """Return whether to hold the next response back; call once for each."""
        if self._left:
            self._left -= 1
            return False
        return True

    def note(self, *, has_gained: bool) -> None:
        """Note a response held back; `has_gained` if more was appended meanwhile."""
        self._pause = 0 if has_gained else min(2 * self._pause + 1, LONGEST_PAUSE)
        self._left = self._pause
