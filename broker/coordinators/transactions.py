"""The transaction coordinators of this broker: a shard for each partition of `__transaction_state`.

`Broker.transactions`. Handlers look up the shard of a transactional id; produce and offset commits
verify here that partitions belong to a transaction.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.coordinators.inquiries import Inquiries, Inquiry
from broker.coordinators.shard_runtime import ShardServices, Stage
from broker.coordinators.shards import Shards, contained
from broker.coordinators.transaction_shard_runtime import TransactionShardRuntime
from broker.runtime.deferred import Deferred
from controller.features.levels import TRANSACTION_VERSION
from controller.topics.topic_names import TRANSACTION_STATE_TOPIC
from coordinator.transactions.initialisation import check
from coordinator.transactions.ports import Identity, Initialisation
from coordinator.transactions.settings import TransactionSettings
from coordinator.transactions.transaction import EPOCH_PER_TRANSACTION
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.coordinators.marker_sender import MarkerSender
    from broker.coordinators.producer_id_blocks import ProducerIdBlocks
    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.timers import Cancellable
    from config.broker import BrokerConfig
    from controller.features.finalised import FinalisedFeatures
    from coordinator.ports import Reply
    from coordinator.transactions.transaction import TopicPartition
    from protocol.messages.transactions import (
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
    )

logger = logging.getLogger(__name__)

Codes = dict["TopicPartition", ErrorCode]


class TransactionRules(NamedTuple):
    """Configuration and features that the coordinators follow."""

    config: BrokerConfig
    features: FinalisedFeatures


def transaction_settings(rules: TransactionRules) -> TransactionSettings:
    """The settings of transactions in a broker's configuration and the cluster's features."""
    config = rules.config
    return TransactionSettings(
        max_timeout_ms=config.transaction_max_timeout_ms,
        id_expiration_ms=config.transactional_id_expiration_ms,
        finalised=partial(rules.features.level, TRANSACTION_VERSION),
    )


class OtherCoordinators(Protocol):
    """The transaction coordinators of other brokers."""

    def partition_count(self) -> int:
        """Number of partitions of `__transaction_state`, now or once it is created."""

    def other_coordinator(self, partition: int, /) -> int | None:
        """The broker that leads a partition of `__transaction_state`, unless it is this one."""

    def add_partitions(
        self,
        broker_id: int,
        request: AddPartitionsToTxnRequest,
        answered: Callable[[AddPartitionsToTxnResponse | None], None],
        /,
    ) -> None:
        """Ask one of them; `answered(None)` if there is no response."""

    def close(self) -> None:
        """Stop sending."""


class TransactionCoordinators(Shards[TransactionShardRuntime]):
    """Shards of transactions, and their periodic work."""

    def __init__(
        self,
        rules: TransactionRules,
        loop: BackgroundLoop,
        producer_ids: ProducerIdBlocks,
        sender: MarkerSender,
        coordinators: OtherCoordinators,
    ) -> None:
        """`coordinators` are the other brokers'."""
        settings = self._settings = transaction_settings(rules)
        config = rules.config
        surroundings = ShardServices(loop.clock, loop.timers, config.request_timeout_ms)

        def make(partition: Partition) -> TransactionShardRuntime:
            return TransactionShardRuntime(partition, surroundings, settings, self._new_id, sender)

        super().__init__(TRANSACTION_STATE_TOPIC, loop, make, coordinators.partition_count)
        self._config = config
        self._producer_ids = producer_ids
        self._sender = sender
        self._others = coordinators
        self._inquiries = Inquiries(coordinators.add_partitions)
        self._series: list[Cancellable] = []
        self._is_refilling = False
        """True if producer ids are being allocated, for clients that will retry."""

    def start(self) -> None:
        """Send markers and begin the periodic work, once the metadata is complete."""
        config = self._config
        self._sender.start()
        self._series = [
            self.timers.every(
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                lambda: self.spawn(self.abort_overdue(), "transaction-timeouts"),
            ),
            self.timers.every(
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                lambda: self.spawn(self.forget_expired(), "transactional-id-expiry"),
            ),
        ]

    def stop(self) -> None:
        """Stop serving and sending."""
        for series in self._series:
            series.cancel()
        self._sender.stop()
        self._others.close()
        super().stop()

    # Requests of producers

    def initialise(self, request: Initialisation, reply: Reply[Identity]) -> None:
        """InitProducerId with a transactional id; waits only for a new block of ids."""
        try:
            check(request, self._settings)
        except ApiError as error:
            reply.complete(Identity(error.code))
            return
        if self._producer_ids.is_empty:
            self.spawn(self._initialise_later(request, reply), "producer ids")
        else:
            self._initialise(request, reply)

    async def _initialise_later(self, request: Initialisation, reply: Reply[Identity]) -> None:
        try:
            await self._producer_ids.refill()
            self._initialise(request, reply)
        except ApiError as error:
            reply.complete(Identity(error.code))
        except asyncio.CancelledError:  # of the block of ids, or of this at the stop
            reply.complete(Identity(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            raise
        except Exception:  # the border: the producer gets an answer after any error
            logger.exception("no producer id for %s", request.transactional_id)
            reply.complete(Identity(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _initialise(self, request: Initialisation, reply: Reply[Identity]) -> None:
        try:
            shard = self.shard_for(request.transactional_id)
        except ApiError as error:
            reply.complete(Identity(error.code))
            return
        now_ms = self.clock.now_ms()
        shard.run(shard.transactions.handle_initialise(request, reply, now_ms))

    # Inquiries of produce and offset commits

    def verify_or_add_partitions(  # noqa: PLR0913  (who, what, how and where to)
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
        callback: Callable[[Codes], None],
    ) -> None:
        """Ask the coordinator whether partitions are in a producer's transaction, or add them.

        `callback` gets the coordinator's code for each partition, NONE where the producer may
        write: at once if the coordinator is here and nothing waits for its log. Inquiries to
        another broker are batched over producers; NETWORK_EXCEPTION if it does not answer. An
        addition waits for a transaction that is just ending
        (`add.partitions.to.txn.retry.backoff.max.ms`).
        """
        producer = (transactional_id, producer_id, producer_epoch)
        inquiry = Inquiry(producer, frozenset(partitions), verify_only)
        if verify_only:
            self._ask(inquiry, callback)
        else:
            self._add_patiently(inquiry, callback, self.clock.monotonic_ms())

    def _add_patiently(
        self, inquiry: Inquiry, callback: Callable[[Codes], None], began_ms: int
    ) -> None:
        def answered(codes: Codes) -> None:
            waited_ms = self.clock.monotonic_ms() - began_ms
            is_over = waited_ms >= self._config.add_partitions_to_txn_retry_backoff_max_ms
            if is_over or ErrorCode.CONCURRENT_TRANSACTIONS not in codes.values():
                callback(codes)
                return
            again = partial(self._add_patiently, inquiry, callback, began_ms)
            self.timers.schedule(self._config.add_partitions_to_txn_retry_backoff_ms, again)

        self._ask(inquiry, answered)

    def _ask(self, inquiry: Inquiry, callback: Callable[[Codes], None]) -> None:
        producer, partitions, verify_only = inquiry
        transactional_id = producer[0]
        other = self._others.other_coordinator(self.partition_for(transactional_id))
        if other is not None:
            self._inquiries.ask(other, inquiry, callback)
            return
        try:
            shard = self.shard_for(transactional_id)
        except ApiError as error:
            callback(inquiry.refused(error.code))
            return
        if verify_only:
            verified: Deferred[Codes] = Deferred()
            verified.then(callback, _unanswerable(inquiry, callback))
            verified.guard(
                lambda: shard.run(shard.transactions.handle_verify(producer, partitions, verified))
            )()
            return
        added: Deferred[ErrorCode] = Deferred()
        added.then(lambda code: callback(inquiry.refused(code)), _unanswerable(inquiry, callback))
        added.guard(
            lambda: shard.run(
                shard.transactions.handle_add_partitions(
                    producer, partitions, EPOCH_PER_TRANSACTION, added, self.clock.now_ms()
                )
            )
        )()

    # Time

    async def abort_overdue(self) -> None:
        """Abort the transactions that have exceeded their timeout, in slices."""
        slices = self.slices()
        for shard in list(self.active_shards()):
            overdue = shard.transactions.overdue(self.clock.now_ms())
            async for transactional_id in slices.each(overdue):
                if shard.stage is not Stage.ACTIVE:
                    break
                with contained(f"abort of overdue transaction {transactional_id}"):
                    shard.run(shard.transactions.expire(transactional_id, self.clock.now_ms()))

    async def forget_expired(self) -> None:
        """Forget transactional ids that have expired."""
        slices = self.slices()
        for shard in list(self.active_shards()):
            async for tombstones in slices.each(
                shard.transactions.forgettable(self.clock.now_ms())
            ):
                if shard.stage is not Stage.ACTIVE:
                    break
                with contained(f"expiry of transactional ids in {shard.partition.index}"):
                    shard.forget(tombstones)

    def _new_id(self) -> int | None:
        """A producer id if one is available; else a block is allocated for the client's retry."""
        producer_id = self._producer_ids.take()
        if producer_id is None and not self._is_refilling:
            self._is_refilling = True
            self.spawn(self._refill(), "producer ids")
        return producer_id

    async def _refill(self) -> None:
        try:
            await self._producer_ids.refill()
        except ApiError as error:
            logger.warning("no producer ids: %s", error)
        finally:
            self._is_refilling = False


def _unanswerable(
    inquiry: Inquiry, callback: Callable[[Codes], None]
) -> Callable[[Exception], None]:
    """The error of an inquiry that failed unexpectedly."""

    def failed(error: Exception) -> None:
        logger.error("verification of a transaction failed", exc_info=error)
        callback(inquiry.refused(ErrorCode.UNKNOWN_SERVER_ERROR))

    return failed
