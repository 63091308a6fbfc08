"""`uniform` for members that subscribe to different topics.

First each member keeps the partitions that it has and still subscribes to. Then each free partition
goes to the subscriber with the fewest. Then topic by topic partitions move from the subscriber with
the most to the one with the fewest, until the numbers differ by no more than one or nothing moves
any more; sixteen rounds at most, since each costs time and the first few do nearly all.

The number of a member's partitions counts all topics. Topics with many partitions for each of their
subscribers go first, as they have most to give. Members of equal load take turns, in their order:
the ranges of least and most loaded members in `_Balancer` grow into the sorted list from both ends,
each time by those that have one more, or one less, than the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups.assignors.specification import MEMBERS_PER_STEP

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from uuid import UUID

    from coordinator.consumer_groups.assignors.specification import Assigning, Specification

MOST_ROUNDS = 16
NO_OWNER = -1
MOVES_PER_STEP = 500


def assign_balanced(group: Specification) -> Assigning:
    """Every member's part."""
    balance = _Balance(group)
    yield from balance.keep()
    if not balance.subscribers:
        return {}
    yield from balance.hand_out()
    yield from balance.even_out()
    return {
        member_id: {topic_id: frozenset(taken) for topic_id, taken in parts.items() if taken}
        for member_id, parts in zip(balance.member_ids, balance.parts, strict=True)
    }


class _Balance:
    """An assignment in the making; members go by their index."""

    def __init__(self, group: Specification) -> None:
        self._group = group
        self.member_ids = list(group.members)
        self.parts: list[dict[UUID, set[int]]] = [{} for _ in self.member_ids]
        self.loads = [0] * len(self.member_ids)
        self.subscribers: dict[UUID, list[int]] = {}
        self._owners: dict[UUID, list[int]] = {}

    def keep(self) -> Generator[None]:
        """Let each member keep the partitions that it has and still subscribes to."""
        for index, member in enumerate(self._group.members.values()):
            for topic_id in member.topics:
                known = self.subscribers.get(topic_id)
                if known is None:
                    known = self.subscribers[topic_id] = []
                    self._owners[topic_id] = [NO_OWNER] * self._group.partition_counts[topic_id]
                known.append(index)
            for topic_id, partitions in member.target.items():
                if topic_id in member.topics:
                    for partition in partitions:
                        self._give(topic_id, partition, index)
            if index % MEMBERS_PER_STEP == MEMBERS_PER_STEP - 1:
                yield

    def hand_out(self) -> Generator[None]:
        """Give free partitions to those that have least."""
        free = {
            topic_id: [index for index, owner in enumerate(owners) if owner == NO_OWNER]
            for topic_id, owners in self._owners.items()
        }
        moves = 0
        for topic_id in self._in_order(topic_id for topic_id, indexes in free.items() if indexes):
            balancer = _Balancer(self.loads, self.subscribers[topic_id])
            for partition in free[topic_id]:
                self._give(topic_id, partition, balancer.next_least_loaded())
                moves += 1
                if moves % MOVES_PER_STEP == 0:
                    yield
            yield

    def even_out(self) -> Generator[None]:
        """Move partitions from those that have most to those that have least."""
        topics = self._in_order(
            topic_id for topic_id, members in self.subscribers.items() if len(members) > 1
        )
        last_changed = -1
        for _ in range(MOST_ROUNDS):
            for place, topic_id in enumerate(topics):
                if place == last_changed:
                    return
                moved = yield from self._even_out(topic_id)
                if moved or last_changed == -1:
                    last_changed = place
                yield

    def _even_out(self, topic_id: UUID) -> Generator[None, None, int]:
        owners = self._owners[topic_id]
        balancer = _Balancer(self.loads, self.subscribers[topic_id])
        if balancer.imbalance <= 1:
            return 0
        of_member: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            of_member.setdefault(owner, []).append(partition)
        moved = 0
        while balancer.spread > 1:
            giver = balancer.next_most_loaded()
            while giver != NO_OWNER and not of_member.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver == NO_OWNER:
                break
            partition = of_member[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.spread <= 1:
                break
            self._give(topic_id, partition, taker)
            moved += 1
            if moved % MOVES_PER_STEP == 0:
                yield
        return moved

    def _give(self, topic_id: UUID, partition: int, member: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner != NO_OWNER:
            self.parts[owner][topic_id].discard(partition)
            self.loads[owner] -= 1
        self.parts[member].setdefault(topic_id, set()).add(partition)
        self._owners[topic_id][partition] = member
        self.loads[member] += 1

    def _in_order(self, topics: Iterable[UUID]) -> list[UUID]:
        def place(topic_id: UUID) -> tuple[float, int, UUID]:
            subscribers = len(self.subscribers[topic_id])
            return -self._group.partition_counts[topic_id] / subscribers, subscribers, topic_id

        return sorted(topics, key=place)


class _Balancer:
    """The members of one topic, by load. `loads` changes while it is in use: by one at a time."""

    def __init__(self, loads: list[int], members: list[int]) -> None:
        self._loads = loads
        ordered = sorted(members, key=lambda member: (loads[member], member))
        self._ordered = ordered
        self._least_end = 0
        self._least_load = loads[ordered[0]] - 1
        self._next_least = 0
        self._most_start = self._most_end = len(ordered)
        self._most_load = loads[ordered[-1]] + 1
        self._next_most = len(ordered) - 1
        self.imbalance = loads[ordered[-1]] - loads[ordered[0]]

    @property
    def spread(self) -> int:
        """Difference between the loads of the current givers and takers."""
        return self._most_load - self._least_load

    def next_least_loaded(self) -> int:
        """The member that gets the next partition."""
        if self._next_least >= self._least_end:
            self._least_load += 1
            while (
                self._least_end < len(self._ordered)
                and self._loads[self._ordered[self._least_end]] == self._least_load
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._ordered[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int:
        """The member that gives the next partition; NO_OWNER if none is left."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_load = self._loads[self._ordered[self._most_start - 1]]
            else:
                self._most_load -= 1
            while (
                self._most_start > 0
                and self._loads[self._ordered[self._most_start - 1]] == self._most_load
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return NO_OWNER
        member = self._ordered[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Take no more from the last one: it has no partition of this topic left."""
        place, end = self._next_most + 1, self._most_end - 1
        self._ordered[place], self._ordered[end] = self._ordered[end], self._ordered[place]
        self._most_end -= 1
