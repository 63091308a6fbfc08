"""Apache Kafka's `simple` assignor for share groups: balanced first, sticky second.

A partition may have several members. With P partitions and M members each partition gets
ceil(M / P) members, its *sharing*, and the places are divided evenly. 5 members on 2 partitions:
sharing 3, so 6 places, 1 for each member and 2 for one of them.

Members keep their partitions, as long as they have no more than their part and a partition no more
than its sharing; missing places are given to members that have too few. If members subscribe to
different topics, this is done for each topic by itself, among its subscribers.

Members count in the order of their ids and partitions in theirs, where Apache goes by its hash
tables; so the assigned partitions can differ, but not their number.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from coordinator.modern_groups.assignments import Target

PLACES_PER_STEP: Final = 200
Place = tuple[UUID, int]
"""A partition of a topic."""
Assignable = Mapping[UUID, frozenset[int]]
"""The partitions that may be assigned, by topic."""


def assign_shares(
    subscriptions: Mapping[str, frozenset[UUID]],
    targets: Mapping[str, Target],
    assignable: Assignable,
    *,
    are_alike: bool,
) -> Generator[None, None, dict[str, Target]]:
    """The next target assignment of every member, in steps.

    `subscriptions` are topics by member id, `targets` the last assignment.
    """
    wanted: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in subscriptions}
    members = sorted(subscriptions)
    if are_alike and members:
        topics = subscriptions[members[0]]
        yield from _share_out(topics, members, targets, assignable, wanted)
    else:
        by_topic: dict[UUID, list[str]] = defaultdict(list)
        for member_id in members:
            for topic_id in subscriptions[member_id]:
                by_topic[topic_id].append(member_id)
        for topic_id, subscribed in by_topic.items():
            yield from _share_out({topic_id}, subscribed, targets, assignable, wanted)
    return {
        member_id: {topic_id: frozenset(indexes) for topic_id, indexes in topics.items()}
        for member_id, topics in wanted.items()
    }


def _share_out(
    topics: frozenset[UUID] | set[UUID],
    members: Sequence[str],
    targets: Mapping[str, Target],
    assignable: Assignable,
    wanted: dict[str, dict[UUID, set[int]]],
) -> Generator[None, None, None]:
    places = [
        (topic_id, index)
        for topic_id in sorted(topics)
        for index in sorted(assignable.get(topic_id, ()))
    ]
    if not places:
        return
    sharing = -(-len(members) // len(places))
    parts = _parts(len(members), sharing * len(places))
    taken = dict.fromkeys(places, 0)
    missing: deque[tuple[str, int]] = deque()
    for count, member_id in enumerate(members):
        room = parts[count]
        for topic_id, indexes in targets.get(member_id, {}).items():
            for index in sorted(indexes):
                place = (topic_id, index)
                if room and taken.get(place, sharing) < sharing:
                    taken[place] += 1
                    wanted[member_id].setdefault(topic_id, set()).add(index)
                    room -= 1
        if room:
            missing.append((member_id, room))
        if count % PLACES_PER_STEP == PLACES_PER_STEP - 1:
            yield
    yield from _fill(taken, sharing, missing, wanted)


def _parts(members: int, places: int) -> list[int]:
    """Return the number of places of each member, as even as possible."""
    ends = [-(-places * count // members) for count in range(members + 1)]
    return [ends[count + 1] - ends[count] for count in range(members)]


def _fill(
    taken: dict[Place, int],
    sharing: int,
    missing: deque[tuple[str, int]],
    wanted: dict[str, dict[UUID, set[int]]],
) -> Generator[None, None, None]:
    """Give places that are left to members that have room, in turn.

    A member that has the partition already is passed over; if all have, the place stays empty.
    """
    for count, ((topic_id, index), holders) in enumerate(taken.items()):
        left = sharing - holders
        for _ in range(len(missing) if left else 0):
            member_id, room = missing.popleft()
            if index not in wanted[member_id].get(topic_id, ()):
                wanted[member_id].setdefault(topic_id, set()).add(index)
                left -= 1
                room -= 1
            if room:
                missing.append((member_id, room))
            if not left:
                break
        if count % PLACES_PER_STEP == PLACES_PER_STEP - 1:
            yield
