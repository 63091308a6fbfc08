"""All transactions of a run: who produces them, who dies and is replaced, and what must hold."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, Final

from broker.network.links import LinkError
from controller.features.feature_znode import encode_levels
from controller.features.levels import NEWEST
from controller.topics.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from controller.znodes import FEATURE
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.records.batch import iterate_headers
from protocol.records.control import ControlType, parse_marker
from protocol.records.record import iterate_records
from tests.simulation.checks.watchman import Violation
from tests.simulation.clients.client import RETRY_SECONDS, Client
from tests.simulation.transactions.account import Account
from tests.simulation.transactions.mover import Mover
from tests.simulation.transactions.transactor import (
    BOOK,
    FIND_VERSION,
    PARTITIONS,
    PLACES,
    Transactor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.partitions.partition import Partition
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster

    Begin = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

INTERNAL: Final = 2
"""Partitions of each internal topic."""
STATE: Final[list[At]] = [
    (topic, index)
    for topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
    for index in range(INTERNAL)
]
LIFE_SECONDS = 0.5, 15.0
DIES = 0.6
"""Probability that a replaced producer is dead; else it lives on."""


def transaction_keys() -> dict[str, int]:
    """Return broker keys with timeouts as short as faults are."""
    return {
        "transaction_state_log_num_partitions": INTERNAL,
        "transaction_state_log_replication_factor": 3,
        "transaction_state_log_min_isr": 2,
        "transaction_abort_timed_out_transaction_cleanup_interval_ms": 500,
    }


class TransactionWorkload:
    """Some transactional ids, each with one producer after the other."""

    def __init__(self, cluster: SimulatedCluster, draws: Random) -> None:
        self._cluster = cluster
        self._client = Client(cluster, "bookkeeper")
        self.is_new = draws.random() < 0.5
        """Transaction version 2 is finalised."""
        self._accounts = [Account(f"account-{each}") for each in range(draws.randint(2, 6))]
        self._random = Random(draws.random())
        self._transactors: list[Transactor] = []
        """All there ever were: who is replaced may live on."""
        self._is_done = False
        self.mover = Mover(cluster, [*STATE, *PLACES]) if draws.random() < 0.8 else None

    async def finalise_features(self) -> None:
        """As an administrator does once all brokers are ours; before the first of them starts."""
        if self.is_new:
            store = self._cluster.zookeeper.ensemble.connect()
            await store.create(FEATURE, encode_levels(NEWEST))

    async def prepare(self) -> None:
        """Have all topics there, those of coordinators too."""
        await self._client.create_topic(BOOK, PARTITIONS, 3)
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
            while True:
                try:
                    broker_id = self._client.random.randrange(len(self._cluster.machines))
                    answer = await self._client.ask(broker_id, request, FIND_VERSION)
                    if not answer.coordinators[0].error_code:
                        break
                except LinkError:
                    pass
                await asyncio.sleep(RETRY_SECONDS)

    def begin(self, begin: Begin) -> list[asyncio.Task[None]]:
        """Have them work until they are calmed."""
        loads = [begin(self._produce(account)) for account in self._accounts]
        return [*loads, *([begin(self.mover.run())] if self.mover is not None else [])]

    def calm(self) -> None:
        """Each finishes the transaction that it is at."""
        self._is_done = True
        for transactor in self._transactors:
            transactor.is_done = True
        if self.mover is not None:
            self.mover.is_done = True

    async def _produce(self, account: Account) -> None:
        """One incarnation after the other; some live on beside their successors."""
        incarnation = 0
        async with asyncio.TaskGroup() as group:
            while not self._is_done:
                incarnation += 1
                transactor = Transactor(self._cluster, account, incarnation, is_new=self.is_new)
                self._transactors.append(transactor)
                task = group.create_task(transactor.run())
                await asyncio.wait({task}, timeout=self._random.uniform(*LIFE_SECONDS))
                if not transactor.is_done:
                    self._replace(transactor)

    def _replace(self, transactor: Transactor) -> None:
        """It has a successor from now on."""
        transactor.is_replaced = True
        self._cluster.note(f"{transactor.name} is replaced")
        if self._random.random() < DIES:
            transactor.die()

    # In the end

    def unsettled(self) -> str:
        """Name a transaction or broker that is unfinished; empty if there is none."""
        for at in [*PLACES, *((GROUP_METADATA_TOPIC, index) for index in range(INTERNAL))]:
            log = self._leader(at).log
            if log.last_stable_offset != log.log_end_offset:
                return f"{at[0]}-{at[1]} is stable up to {log.last_stable_offset}"
        for _, broker in self._cluster.brokers():
            if broker.services is None:
                return "a broker does not serve yet"
            for shard in broker.services.transactions.active_shards():
                for name in shard.transactions.transactional_ids:
                    known = shard.transactions._transactions[name]
                    if known.state.is_decided or known.partitions:
                        return f"{name} is in {known.state.name}"
        return ""

    async def audit(self) -> None:
        """All or nothing of each transaction; raises Violation."""
        visible = {at: _committed(self._leader(at)) for at in PLACES}
        for account in self._accounts:
            shown = {at: numbers.get(account.name, []) for at, numbers in visible.items()}
            problem = account.audit(shown)
            reader = Transactor(self._cluster, account, 1000, is_new=self.is_new)
            reader.is_done = True
            position, wanted = await reader.position(), account.last_of(shown)
            if not problem and position != wanted:
                problem = f"{account.name}: position {position}, the last commit was {wanted}"
            if problem:
                raise Violation(problem)

    @property
    def counts(self) -> str:
        """Count the outcomes and the moves."""
        told = [outcome.value for account in self._accounts for outcome in account.outcomes]
        parts = [f"{told.count(each)} {each}" for each in sorted(set(told))]
        moves = 0 if self.mover is None else self.mover.count
        return f"version {2 if self.is_new else 0}, {', '.join(parts)}, {moves} moves"

    def _leader(self, at: At) -> Partition:
        for _, partition in self._cluster.partitions():
            if (partition.topic, partition.index) == at and partition.is_leader:
                return partition
        raise Violation(f"{at[0]}-{at[1]} has no leader")


def _committed(partition: Partition) -> dict[str, list[int]]:
    """The numbers that a reader of committed records sees, by account, in their order."""
    log = partition.log
    open_values: dict[int, list[tuple[int, bytes]]] = {}
    committed: list[tuple[int, bytes]] = []
    for batch in log.read_batches(log.log_start_offset, log.log_end_offset):
        ((_, header),) = iterate_headers(memoryview(batch))
        if header.is_control:
            marker = parse_marker(batch)
            values = open_values.pop(header.producer_id, [])
            if marker is not None and marker.type is ControlType.COMMIT:
                committed += values
        else:
            values = open_values.setdefault(header.producer_id, [])
            values += [(each.offset, bytes(each.value or b"")) for each in iterate_records(batch)]
    found: dict[str, list[int]] = {}
    for _, value in sorted(committed):
        name, _, number = value.decode().partition("/")
        found.setdefault(name, []).append(int(number))
    return found
