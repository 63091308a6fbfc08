"""Which answers to a follower are held back."""

from __future__ import annotations

LONGEST_PAUSE = 127
"""How many answers are given at once, when holding them back gains nothing, until it is tried."""


class FollowerBatching:
    """Whether answers to one follower are worth holding back: as long as that has been of use.

    What pays is that one answer carries what several requests have appended, and that is so while
    producers keep several under way. One that waits for each of its records would only wait longer,
    so what has gained nothing is tried ever more rarely.
    """

    __slots__ = ("_left", "_pause")

    def __init__(self) -> None:
        self._pause = 0
        self._left = 0

    def is_worthwhile(self) -> bool:
        """Whether to hold the next answer back; ask once for each."""
        if self._left:
            self._left -= 1
            return False
        return True

    def note(self, *, has_gained: bool) -> None:
        """An answer was held back; tells if more was appended meanwhile."""
        self._pause = 0 if has_gained else min(2 * self._pause + 1, LONGEST_PAUSE)
        self._left = self._pause
