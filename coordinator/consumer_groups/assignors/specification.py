"""Input of an assignor, and the registry of assignors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.modern_groups.assignments import Target

MEMBERS_PER_STEP = 100
"""Members that an assignor looks at before others are served."""


class MemberSpecification(NamedTuple):
    """One member as an assignor sees it."""

    instance_id: str | None
    topics: AbstractSet[UUID]
    """Existing topics that it subscribes to."""
    target: Target
    """Its part of the present target assignment."""


class Specification(NamedTuple):
    """A group as an assignor sees it."""

    members: Mapping[str, MemberSpecification]
    partition_counts: Mapping[UUID, int]
    """For every topic that some member subscribes to."""
    are_alike: bool
    """True if all members subscribe to the same topics."""


Assignment = dict[str, "Target"]
"""Every member's part, by member id; a member that is missing gets nothing."""

Assigning = Generator[None, None, Assignment]

Assignor = Callable[[Specification], Assigning]
