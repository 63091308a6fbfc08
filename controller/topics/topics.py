"""The commands of admin requests on topics: writes to the store, on which the controller acts.

Each command checks everything first and writes last, so `validate_only` is the same without the
writing. Results come per topic: one bad topic does not stop the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from controller.metadata_store.flights import in_flights, read_many
from controller.metadata_store.store import (
    BadVersionError,
    Create,
    MetadataStore,
    NodeExistsError,
    Operation,
    OutcomeUnknownError,
    SetData,
    StoreError,
    StoreUnavailableError,
    TooLargeError,
)
from controller.partitions.partition_growth import PartitionGrowth, missing_partitions, place_growth
from controller.partitions.replica_assignment import (
    AssignmentPlan,
    Brokers,
    Choose,
    assign_replicas,
    checked_assignment,
)
from controller.topics.reported_topics import ReportedTopics
from controller.topics.topic_names import check_name, collision_key
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
from protocol.errors import ApiError, ErrorCode, detached
from protocol.uuids import draw_uuid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from controller.ports import Slices

WRITE_ATTEMPTS = 5
"""Number of attempts of a conditional write against other writers. Fixed: those are few."""


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
    """Given for an imported topic; otherwise random."""

    @property
    def partition_count(self) -> int:
        """The number of partitions requested; not positive if the client sent no valid one."""
        return self.partitions if self.assignment is None else len(self.assignment)


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


class Chance(NamedTuple):
    """The random choices for topics."""

    choose: Choose
    """Places replicas."""
    random_bytes: Callable[[int], bytes]
    """Makes ids."""


class TopicCommands:
    """Creates, grows and deletes topics by writing to the store."""

    def __init__(
        self,
        store: MetadataStore,
        chance: Chance,
        max_new_partitions: int,
        slices: Callable[[], Slices],
    ) -> None:
        """`max_new_partitions` is how many partitions one request may create."""
        self._store = store
        self._chance = chance
        self._max_new_partitions = max_new_partitions
        self._slices = slices
        self.told = ReportedTopics()
        """Filled by the handlers that answer clients."""

    def check_total(self, counts: Iterable[int]) -> None:
        """Check the number of partitions that a request creates, by topic.

        Raises ApiError POLICY_VIOLATION. Counts that are not positive have errors of their own.
        Source: ReplicationControlManager.validateTotalNumberOfPartitions.
        """
        total = sum(count for count in counts if count > 0)
        if total > self._max_new_partitions:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                "Excessively large number of partitions per request. "
                f"It wants {total} of them, max.new.partitions.per.request "
                f"is {self._max_new_partitions}.",
            )

    async def create(
        self,
        topics: Sequence[NewTopic],
        brokers: Brokers,
        *,
        validate_only: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> dict[str, CreatedTopic | ApiError]:
        """Create topics; each by one transaction.

        `is_wanted` is called right before anything is written, as the store may have been slow; if
        it returns false, the result is REQUEST_TIMED_OUT and nothing was sent. No topic is created
        if together they have too many partitions.
        """
        try:
            self.check_total(topic.partition_count for topic in topics)
        except ApiError as error:
            return {topic.name: error for topic in topics}
        slices = self._slices()
        existing = await self._existing(slices)
        results: dict[str, CreatedTopic | ApiError] = {}
        planned: list[NewTopic] = []
        async for topic in slices.each(topics):
            try:
                existing.check_free(topic.name)
                results[topic.name] = await self._plan(topic, brokers, slices)
                planned.append(topic)
            except ApiError as error:
                results[topic.name] = detached(error)
        if not validate_only:
            transactions = await self._transactions(planned, results, slices)
            if is_wanted():
                await self._write_new(planned, transactions, results, slices)
            else:
                results.update((topic.name, _too_late()) for topic in planned)
        return results

    async def delete(
        self, topics: Iterable[str], ids: Mapping[str, UUID] = MappingProxyType({})
    ) -> dict[str, ApiError | None]:
        """Request deletion of existing topics; None for each that the controller will delete.

        A topic with another id than the one given is another topic: the named one does not exist.
        """
        names = list(topics)
        slices = self._slices()
        nodes = await read_many(self._store, [topic_path(name) for name in names], slices)
        results: dict[str, ApiError | None] = {}
        async for name, node in slices.each(zip(names, nodes, strict=True)):
            is_there = node is not None and (
                name not in ids or decode_topic(name, node.data).topic_id == ids[name]
            )
            results[name] = None if is_there else unknown_topic(name)
        wanted = [name for name in names if results[name] is None]
        deletions = [[Create(delete_topic_path(name))] for name in wanted]
        outcomes = await in_flights(deletions, self._store.multi_many, slices)
        async for name, outcome in slices.each(zip(wanted, outcomes, strict=True)):
            if isinstance(outcome, StoreError) and not isinstance(outcome, NodeExistsError):
                results[name] = _unavailable(outcome)
        return results

    async def grow(
        self,
        growth: PartitionGrowth,
        brokers: Brokers,
        *,
        validate_only: bool = False,
        added_before: int = 0,
    ) -> int:
        """Add partitions up to a total; returns how many. Raises ApiError.

        `added_before` is the number of partitions the same request has added to other topics.
        """
        for _ in range(WRITE_ATTEMPTS):
            path = topic_path(growth.topic)
            node = await self._store.exists(path)
            if node is None or await self._store.exists(delete_topic_path(growth.topic)):
                raise unknown_topic(growth.topic)
            current = decode_topic(growth.topic, node.data)
            self.check_total((added_before, missing_partitions(growth, current)))
            placements = place_growth(growth, current, brokers, self._chance.choose)
            added = {index: replicas async for index, replicas in self._slices().each(placements)}
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

    async def _existing(self, slices: Slices) -> _ExistingTopics:
        names = await self._store.children(TOPICS)
        existing = _ExistingTopics(await self._store.children(DELETE_TOPICS))
        async for name in slices.each(names):
            existing.take(name)
        return existing

    async def _plan(self, topic: NewTopic, brokers: Brokers, slices: Slices) -> CreatedTopic:
        topic_id = (
            draw_uuid(self._chance.random_bytes) if topic.topic_id is None else topic.topic_id
        )
        if topic.assignment is not None:
            placements = checked_assignment(topic.assignment, brokers)
        else:
            plan = AssignmentPlan(topic.partitions, topic.replication_factor)
            placements = assign_replicas(brokers, plan, self._chance.choose)
        return CreatedTopic(
            topic_id, {index: replicas async for index, replicas in slices.each(placements)}
        )

    async def _transactions(
        self,
        topics: Sequence[NewTopic],
        results: Mapping[str, CreatedTopic | ApiError],
        slices: Slices,
    ) -> list[list[Operation]]:
        config_paths = [config_path(TOPIC_ENTITY, topic.name) for topic in topics]
        leftovers = await read_many(self._store, config_paths, slices)
        transactions: list[list[Operation]] = []
        named = zip(topics, config_paths, leftovers, strict=True)
        async for topic, path, leftover in slices.each(named):
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
        return transactions

    async def _write_new(
        self,
        topics: Sequence[NewTopic],
        transactions: Sequence[Sequence[Operation]],
        results: dict[str, CreatedTopic | ApiError],
        slices: Slices,
    ) -> None:
        outcomes = await in_flights(transactions, self._store.multi_many, slices)
        async for topic, outcome in slices.each(zip(topics, outcomes, strict=True)):
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
        """Return whether a topic was created after all; waits until the store is reachable."""
        while True:
            await self._store.wait_until_reachable()
            try:
                node = await self._store.exists(topic_path(topic))
            except StoreUnavailableError:
                continue
            return node is not None and decode_topic(topic, node.data).topic_id == created.topic_id


class _ExistingTopics:
    """Names taken, for a request that may create many topics."""

    def __init__(self, doomed: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._doomed = set(doomed)
        self._by_key: dict[str, str] = {}

    def take(self, topic: str) -> None:
        """Note a name as taken."""
        self._names.add(topic)
        self._by_key[collision_key(topic)] = topic

    def check_free(self, topic: str) -> None:
        """Raise ApiError for an illegal, taken or colliding name; then take it."""
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
        self.take(topic)


def unknown_topic(topic: str) -> ApiError:
    """The error for a topic that does not exist."""
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")


def _exists(topic: str, *, is_doomed: bool = False) -> ApiError:
    reason = "is marked for deletion" if is_doomed else "already exists"
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic}' {reason}.")


def _too_late() -> ApiError:
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "Nothing was changed: the request timed out.")


def _unavailable(error: StoreError) -> ApiError:
    if isinstance(error, TooLargeError):
        return ApiError(ErrorCode.POLICY_VIOLATION, f"The topic is too large: {error.reason}.")
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"Nothing was changed: {error.reason}")
