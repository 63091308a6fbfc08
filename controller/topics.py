"""Commands on topics: what the admin requests write. The controller reacts to what is written.

Each command checks everything first and writes last, so ``validate_only`` is the same without the
writing.  Results come per topic: one bad topic does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.replica_assignment import (
    AssignmentPlan,
    Choose,
    assign_replicas,
    check_manual_assignment,
    check_replicas,
    continue_assignment,
)
from controller.store import (
    BadVersionError,
    Create,
    MetadataStore,
    NodeExistsError,
    Operation,
    OutcomeUnknownError,
    SetData,
    StoreError,
    StoreUnavailableError,
)
from controller.topic_names import check_name, collision_key
from controller.znodes import (
    DELETE_TOPICS,
    TOPIC_ENTITY,
    TOPICS,
    Replicas,
    TopicAssignment,
    config_path,
    decode_topic,
    delete_topic_path,
    encode_config,
    encode_topic,
    topic_path,
)
from protocol.errors import ApiError, ErrorCode
from protocol.uuids import UUID_BYTES, from_random_bytes, is_usable

if TYPE_CHECKING:
    from uuid import UUID

Brokers = Mapping[int, str | None]
"""Live brokers and their racks."""

WRITE_ATTEMPTS = 5
"""How often a conditional write is tried against other writers."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, with defaults already filled in."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    assignment: Mapping[int, Replicas] | None = None
    """Given by the client instead of the two counts."""
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_id: UUID | None = None
    """Given when a topic is adopted; otherwise drawn."""


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created, or would have been."""

    topic_id: UUID
    assignment: dict[int, Replicas]

    @property
    def replication_factor(self) -> int:
        """Number of replicas of each partition."""
        return len(self.assignment[0])

    def __str__(self) -> str:
        return f"partitions {len(self.assignment)}, replication factor {self.replication_factor}"


@dataclass(frozen=True, slots=True)
class PartitionGrowth:
    """More partitions for a topic."""

    topic: str
    total: int
    assignments: Sequence[Replicas] | None = None
    """Replicas of each added partition, if the client places them."""


class TopicCommands:
    """Creates, grows and deletes topics by writing to the store."""

    def __init__(
        self, store: MetadataStore, choose: Choose, random_bytes: Callable[[int], bytes]
    ) -> None:
        """Chance is handed in: ``choose`` places replicas, ``random_bytes`` makes ids."""
        self._store = store
        self._choose = choose
        self._random_bytes = random_bytes

    async def create(
        self,
        topics: Sequence[NewTopic],
        brokers: Brokers,
        *,
        validate_only: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> dict[str, CreatedTopic | ApiError]:
        """Create topics; each by one transaction, all in one flight.

        ``is_wanted`` is asked once more before anything is written; the store may have been slow.
        """
        existing = await self._existing()
        results: dict[str, CreatedTopic | ApiError] = {}
        planned: list[NewTopic] = []
        for topic in topics:
            try:
                existing.check_free(topic.name)
                results[topic.name] = self._plan(topic, brokers)
                planned.append(topic)
            except ApiError as error:
                results[topic.name] = error
        if not validate_only and is_wanted():
            await self._write_new(planned, results)
        return results

    async def delete(self, topics: Iterable[str]) -> dict[str, ApiError | None]:
        """Ask the controller to delete topics that exist; None for each that it will."""
        names = list(topics)
        nodes = await self._store.get_many([topic_path(name) for name in names])
        results: dict[str, ApiError | None] = {}
        for name, node in zip(names, nodes, strict=True):
            results[name] = None if node is not None else unknown_topic(name)
        wanted = [name for name in names if results[name] is None]
        outcomes = await self._store.multi_many([[Create(delete_topic_path(n))] for n in wanted])
        for name, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, StoreError) and not isinstance(outcome, NodeExistsError):
                results[name] = _unavailable(outcome)
        return results

    async def grow(
        self, growth: PartitionGrowth, brokers: Brokers, *, validate_only: bool = False
    ) -> int:
        """Add partitions up to a total; returns how many. Raises ApiError."""
        for _ in range(WRITE_ATTEMPTS):
            path = topic_path(growth.topic)
            node = await self._store.exists(path)
            if node is None or await self._store.exists(delete_topic_path(growth.topic)):
                raise unknown_topic(growth.topic)
            current = decode_topic(growth.topic, node.data)
            added = self._place_growth(growth, current, brokers)
            if validate_only:
                return len(added)
            grown = TopicAssignment(
                {**current.partitions, **added},
                current.topic_id,
                current.adding_replicas,
                current.removing_replicas,
            )
            try:
                await self._store.set(path, encode_topic(grown), node.version)
            except BadVersionError:
                continue
            except StoreError as error:
                raise _unavailable(error) from error
            return len(added)
        raise ApiError(
            ErrorCode.REQUEST_TIMED_OUT, f"Topic '{growth.topic}' is being changed by others."
        )

    async def _existing(self) -> _ExistingTopics:
        return _ExistingTopics(
            await self._store.children(TOPICS), await self._store.children(DELETE_TOPICS)
        )

    def _plan(self, topic: NewTopic, brokers: Brokers) -> CreatedTopic:
        topic_id = self._draw_id() if topic.topic_id is None else topic.topic_id
        if topic.assignment is not None:
            check_manual_assignment(topic.assignment, brokers)
            return CreatedTopic(topic_id, dict(sorted(topic.assignment.items())))
        plan = AssignmentPlan(topic.partitions, topic.replication_factor)
        return CreatedTopic(topic_id, assign_replicas(brokers, plan, self._choose))

    async def _write_new(
        self, topics: Sequence[NewTopic], results: dict[str, CreatedTopic | ApiError]
    ) -> None:
        config_paths = [config_path(TOPIC_ENTITY, topic.name) for topic in topics]
        leftovers = await self._store.get_many(config_paths)
        transactions: list[list[Operation]] = []
        for topic, path, leftover in zip(topics, config_paths, leftovers, strict=True):
            created = results[topic.name]
            assert isinstance(created, CreatedTopic)
            config = encode_config(topic.configs)
            assignment = TopicAssignment(created.assignment, created.topic_id)
            transactions.append(
                [
                    Create(path, config) if leftover is None else SetData(path, config),
                    Create(topic_path(topic.name), encode_topic(assignment)),
                ]
            )
        outcomes = await self._store.multi_many(transactions)
        for topic, outcome in zip(topics, outcomes, strict=True):
            if isinstance(outcome, NodeExistsError):
                results[topic.name] = _exists(topic.name)
            elif isinstance(outcome, OutcomeUnknownError):
                created = results[topic.name]
                assert isinstance(created, CreatedTopic)
                if not await self._turned_out(topic.name, created):
                    results[topic.name] = _unavailable(outcome)
            elif isinstance(outcome, StoreError):
                results[topic.name] = _unavailable(outcome)

    async def _turned_out(self, topic: str, created: CreatedTopic) -> bool:
        """Whether a topic was created after all; waits until the store can tell."""
        while True:
            await self._store.wait_until_reachable()
            try:
                node = await self._store.exists(topic_path(topic))
            except StoreUnavailableError:
                continue
            return node is not None and decode_topic(topic, node.data).topic_id == created.topic_id

    def _place_growth(
        self, growth: PartitionGrowth, current: TopicAssignment, brokers: Brokers
    ) -> dict[int, Replicas]:
        count = len(current.partitions)
        if current.adding_replicas or current.removing_replicas:
            raise ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"Topic '{growth.topic}' has a reassignment in progress.",
            )
        if growth.total <= count:
            raise ApiError(ErrorCode.INVALID_PARTITIONS, _growth_problem(growth, count))
        added = growth.total - count
        if growth.assignments is None:
            return continue_assignment(brokers, current.partitions, added, self._choose)
        _check_growth(growth, added, len(current.partitions[0]))
        placed = {count + index: replicas for index, replicas in enumerate(growth.assignments)}
        for partition, replicas in placed.items():
            check_replicas(partition, replicas, brokers)
        return placed

    def _draw_id(self) -> UUID:
        while True:
            topic_id = from_random_bytes(self._random_bytes(UUID_BYTES))
            if is_usable(topic_id):
                return topic_id


class _ExistingTopics:
    """Names taken, for a request that may create many topics."""

    def __init__(self, names: Iterable[str], doomed: Iterable[str]) -> None:
        self._names = set(names)
        self._doomed = set(doomed)
        self._by_key = {collision_key(name): name for name in self._names}

    def check_free(self, topic: str) -> None:
        """Refuse an illegal name, one that is taken, and one that collides; then take it."""
        check_name(topic)
        if topic in self._names:
            raise _exists(topic, is_doomed=topic in self._doomed)
        other = self._by_key.get(collision_key(topic))
        if other is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{topic}' collides with the existing topic '{other}': "
                "names that differ only in '.' and '_' cannot stand beside each other.",
            )
        self._names.add(topic)
        self._by_key[collision_key(topic)] = topic


def unknown_topic(topic: str) -> ApiError:
    """The error for a topic that does not exist."""
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def _exists(topic: str, *, is_doomed: bool = False) -> ApiError:
    reason = "is marked for deletion" if is_doomed else "already exists"
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' {reason}.")


def _unavailable(error: StoreError) -> ApiError:
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"Nothing was changed: {error.reason}")


def _growth_problem(growth: PartitionGrowth, count: int) -> str:
    if growth.total == count:
        return f"Topic already has {count} partitions."
    return (
        f"Topic currently has {count} partitions, "
        f"which is higher than the requested {growth.total}."
    )


def _check_growth(growth: PartitionGrowth, added: int, factor: int) -> None:
    assert growth.assignments is not None
    if len(growth.assignments) != added:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Growing by {added} partitions needs {added} assignments, "
            f"not {len(growth.assignments)}.",
        )
    for replicas in growth.assignments:
        if len(replicas) != factor:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The topic has {factor} replicas of each partition; "
                f"the assignment {list(replicas)} has {len(replicas)}.",
            )
