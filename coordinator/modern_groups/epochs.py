"""The epochs of groups and members that mean something special."""

from __future__ import annotations

from typing import Final

FIRST_EPOCH: Final = 1
"""Of a group that has no record yet, and of its empty target assignment."""
JOINING_EPOCH: Final = 0
"""Epoch of a member that joins, or joins again."""
LEAVING_EPOCH: Final = -1
STATIC_LEAVING_EPOCH: Final = -2
"""Of a static member that will be back; others do not get its partitions meanwhile."""
NO_EPOCH: Final = -1

NEVER_ASSIGNED_MS: Final = 0
"""The time of a target assignment that no assignor made: the next waits for no interval."""
