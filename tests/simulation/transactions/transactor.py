"""A producer of transactions, in the older protocol or in version 2 (KIP-890).

After an error that passes it sends the same request again, to whoever it is for now; after any
other it abandons the transaction and begins anew. It may die between two requests, and it may live
on unaware of its successor.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.network.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.produce import ProduceRequest
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from protocol.records.builder import NewRecord, build_batch
from tests.simulation.checks.refusals import report
from tests.simulation.clients.client import RETRY_SECONDS, TIMEOUT_MS, Client
from tests.simulation.cluster import EPOCH_MS
from tests.simulation.transactions.account import Life

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.transactions.account import Account

BOOK: Final = "book"
PARTITIONS: Final = 2
PLACES: Final[list[At]] = [(BOOK, index) for index in range(PARTITIONS)]
FIND_VERSION: Final = 4
INIT_VERSION: Final = 4
FETCH_VERSION: Final = 8
OLD_VERSIONS: Final = {"produce": 9, "commit": 3, "end": 3}
NEW_VERSIONS: Final = {"produce": 12, "commit": 5, "end": 5}
GROUP, TRANSACTIONAL_ID = 0, 1
TRANSACTION_TIMEOUTS_MS: Final = 3000, 60_000
TRIES_OF_THE_LAST: Final = 20
"""Reads of a position until it must be a stable one, at least."""

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
FINAL: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
"""Errors that end a transaction that timed out or whose producer was fenced."""


class OverError(Exception):
    """A request was refused for good."""


class DeadError(OverError):
    """The producer is dead, and does not hear what became of its request."""


class Transactor(Client):
    """One incarnation of the producer of a transactional id."""

    def __init__(
        self, cluster: SimulatedCluster, account: Account, incarnation: int, *, is_new: bool
    ) -> None:
        """`is_new` if it speaks transaction version 2."""
        super().__init__(cluster, f"{account.name}.{incarnation}")
        self.must_end = False
        self.is_replaced = False
        self._account = account
        self._incarnation = incarnation
        self._is_new = is_new
        self._versions = NEW_VERSIONS if is_new else OLD_VERSIONS
        self._timeout_ms = self.random.choice(TRANSACTION_TIMEOUTS_MS)
        self._producer_id, self._epoch = -1, -1
        self._life = Life(incarnation, 0.0, 0.0)
        self._sequences: dict[At, int] = {}
        self._coordinators: dict[int, int] = {}
        self._rest_seconds = self.random.choice((0.0, 0.0, 0.5))

    @property
    def group_id(self) -> str:
        """The group whose positions it commits."""
        return f"{self._account.name}-group"

    async def run(self) -> None:
        """One transaction after the other, until it is to end or is fenced."""
        while not self.must_end and not self.is_done:
            try:
                await self._initialise()
                while not self.must_end and not self.is_done:
                    await self._transact()
                    await asyncio.sleep(self.random.uniform(0, self._rest_seconds))
            except OverError:
                if self.is_replaced:
                    return

    def die(self) -> None:
        """Say nothing more; what is on its way may arrive."""
        self.must_end = True
        for link in self._links.values():
            link.hang_up(is_reset=self.random.random() < 0.5)

    async def _initialise(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._account.name, transaction_timeout_ms=self._timeout_ms
        )
        asked_at = self.cluster.loop.now
        answer = await self._coordinated(
            TRANSACTIONAL_ID, request, INIT_VERSION, lambda told: told.error_code
        )
        self._identify(answer)
        self._life = Life(self._incarnation, asked_at, self.cluster.loop.now)
        self._account.confirmed(self._life)

    def _identify(self, answer: Any) -> None:
        identity = answer.producer_id, answer.producer_epoch
        if identity != (self._producer_id, self._epoch):
            self._sequences = {}
        self._producer_id, self._epoch = identity

    async def _transact(self) -> None:
        number = self._account.begin()
        try:
            if not self._is_new:
                await self._add_partitions()
            for at in self.random.sample(PLACES, len(PLACES)):
                await self._produce(at, number)
            if not self._is_new:
                await self._add_offsets()
            await self._commit_position(number)
        except OverError:
            if self._is_new or self.random.random() < 0.5:
                raise
            await self._end(number, is_commit=False)
            return
        await self._end(number, is_commit=self.random.random() < 0.8)

    async def _add_partitions(self) -> None:
        topic = AddPartitionsToTxnTopic(name=BOOK, partitions=list(range(PARTITIONS)))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._account.name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        await self._coordinated(
            TRANSACTIONAL_ID,
            request,
            3,
            lambda told: max(
                one.partition_error_code
                for topic in told.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ),
        )

    async def _add_offsets(self) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._account.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=self.group_id,
        )
        await self._coordinated(TRANSACTIONAL_ID, request, 3, lambda told: told.error_code)

    async def _produce(self, at: At, number: int) -> None:
        """One record; the same again until it is there."""
        value = f"{self._account.name}/{number}".encode()
        now_ms = EPOCH_MS + int(self.cluster.loop.now * 1000)
        batch = build_batch(
            [NewRecord(now_ms, None, value)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(at, 0),
            is_transactional=True,
        )
        data = ProduceRequest.TopicData.PartitionData(index=at[1], records=batch)
        request = ProduceRequest(
            transactional_id=self._account.name,
            acks=-1,
            timeout_ms=TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicData(name=at[0], partition_data=[data])],
        )
        while True:
            leader = self.leaders.get(at, -1)
            if leader >= 0:
                answer = await self._asked(leader, request, self._versions["produce"])
                if answer is not None:
                    (told,) = answer.responses[0].partition_responses
                    if self._is_done(told.error_code, "Produce"):
                        self._sequences[at] = self._sequences.get(at, 0) + 1
                        return
            await self._pause()
            await self.refresh(BOOK)

    async def _commit_position(self, number: int) -> None:
        kind = TxnOffsetCommitRequest.Topic
        position = kind.Partition(
            partition_index=0, committed_offset=number, committed_metadata=None
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._account.name,
            group_id=self.group_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[kind(name=BOOK, partitions=[position])],
        )
        await self._coordinated(
            GROUP,
            request,
            self._versions["commit"],
            lambda told: told.topics[0].partitions[0].error_code,
        )

    async def _end(self, number: int, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._account.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_commit,
        )
        times: list[float] = []

        def sent() -> None:
            times.append(self.cluster.loop.now)
            if is_commit:
                self._account.asked(number)

        try:
            answer = await self._coordinated(
                TRANSACTIONAL_ID,
                request,
                self._versions["end"],
                lambda told: told.error_code,
                sent,
            )
        except OverError as over:
            if is_commit and len(times) == 1 and not isinstance(over, DeadError):
                self._account.refused(number)
            raise
        if is_commit:
            self._account.committed(number, self._life, times[-1])
        if self._is_new:
            self._identify(answer)
        if is_commit and self.random.random() < 0.3:
            await self._check_position(number)

    async def _check_position(self, number: int) -> None:
        """A position whose commit was confirmed is there, or a later one."""
        found = await self.position()
        if found < number and not self.must_end:
            report(f"{self.group_id}: position {found}, after the commit of {number}")

    async def position(self) -> int:
        """The stable position of the group; -1 if there is none."""
        kind = OffsetFetchRequest.Group
        group = kind(group_id=self.group_id, topics=[kind.Topic(name=BOOK, partition_indexes=[0])])
        request = OffsetFetchRequest(groups=[group], require_stable=True)

        def code(told: Any) -> int:
            (answered,) = told.groups
            error: int = answered.error_code or answered.topics[0].partitions[0].error_code
            return error

        answer = await self._coordinated(GROUP, request, FETCH_VERSION, code)
        position: int = answer.groups[0].topics[0].partitions[0].committed_offset
        return position

    # Requests

    async def _coordinated(
        self,
        key_type: int,
        request: Any,
        version: int,
        code_of: Callable[[Any], int],
        sent: Callable[[], None] = lambda: None,
    ) -> Any:
        """Ask a coordinator until it answers; raises OverError."""
        while True:
            broker_id = await self._coordinator(key_type)
            sent()
            answer = await self._asked(broker_id, request, version)
            if answer is not None and self._is_done(code_of(answer), type(request).__name__):
                return answer
            self._coordinators.pop(key_type, None)
            await self._pause()

    async def _coordinator(self, key_type: int) -> int:
        while key_type not in self._coordinators:
            key = self.group_id if key_type == GROUP else self._account.name
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            some_broker = self.random.randrange(len(self.cluster.machines))
            answer = await self._asked(some_broker, request, FIND_VERSION)
            if answer is not None and not answer.coordinators[0].error_code:
                self._coordinators[key_type] = answer.coordinators[0].node_id
            else:
                await self._pause()
        return self._coordinators[key_type]

    async def _asked(self, broker_id: int, request: Any, version: int) -> Any:
        """The answer; None if there is none. Raises OverError once it is dead."""
        if self.must_end:
            raise DeadError
        try:
            return await self.ask(broker_id, request, version)
        except LinkError:
            return None

    def _is_done(self, code: int, what: str) -> bool:
        """Return whether an answer is no error; raise OverError for one that does not pass."""
        error = ErrorCode(code)
        if error in PASSING:
            return False
        if error is ErrorCode.NONE:
            return True
        if error not in FINAL:
            report(f"{self.name}: {what} answers {error.name}")
        raise OverError(error)

    async def _pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.02, RETRY_SECONDS))
