"""Produce: append record batches to partitions led by this broker.

Versions 3 to 13 are served; 0 to 2 are listed because librdkafka looks for them (KAFKA-18659), and
end the connection when sent. From v11 on clients understand TRANSACTION_ABORTABLE, from v12 on
writing to a partition adds it to the transaction (KIP-890), from v13 on topics are named by id.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from broker.handlers.records.appends import (
    ADDS_PARTITIONS_SINCE,
    FIRST_VERSION_BY_ID,
    Appends,
    add_endpoints,
    may_write,
    name_leader,
    refuse_all,
    refused,
)
from broker.handlers.records.recompression import Recompression, Recompressions, Result
from broker.handlers.records.transaction_verification import Support, Transaction, Verification
from broker.replication.replica_machine import ACKS_ALL
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_transaction
from broker.requests.steps import in_slices, in_steps
from broker.runtime.deferred import Deferred, HangUp
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT, parse_header
from storage.append.append_source import FROM_RECOMPRESSION

if TYPE_CHECKING:
    from broker.handlers.records.appends import Answer, Uncommitted
    from broker.handlers.records.transaction_verification import Key, Verified
    from broker.partitions.commit_waiters import CommitWaiter
    from broker.partitions.partition import Partition
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.timers import Cancellable
    from protocol.records.batch import BatchHeader

Now = ProduceResponse | None
Later = Deferred[ProduceResponse] | Deferred[Now]

ABORTABLE_SINCE: Final = 11
ATTRIBUTES_LOW_BYTE: Final = 22
"""Position of the transactional flag in a batch; the log checks the rest of the batch."""


@handles(ProduceRequest, versions="3-13", advertised="0-13")
def produce(context: Context, request: ProduceRequest) -> Now | Later:
    """Append, and answer when `acks` is satisfied. With acks=0 an error ends the connection."""
    appends = Appends(context, request)
    if _has_transactional_batch(request):
        return _produce_in_transaction(appends)
    return _produce(appends)


def _produce(
    appends: Appends,
) -> Now | Later:
    if appends.context.is_long:
        return _produce_in_steps(appends.context, appends)
    response = appends.append_all()
    if appends.is_late:
        return in_slices(appends.context, _append_rest(appends, response))
    return _after(appends, response) if appends.waiting else _conclude(appends, response)


@in_steps
def _produce_in_steps(_: Context, appends: Appends) -> Steps[Now | Later]:
    return (yield from _append_rest(appends, ProduceResponse(responses=[])))


def _append_rest(appends: Appends, response: ProduceResponse) -> Steps[Now | Later]:
    yield from appends.append_rest(response)
    return _after(appends, response)


def _after(appends: Appends, response: ProduceResponse) -> Now | Later:
    """All that can be appended now was appended."""
    if appends.waiting:
        return RecompressedProduce(appends, response).deferred
    return _conclude(appends, response)


def _conclude(appends: Appends, response: ProduceResponse) -> Now | Later:
    """Answer, or wait for the in-sync replicas, once nothing is left to append."""
    if appends.request.acks == 0:
        _hang_up_on_error(response.responses)
        return None
    if not appends.pending:
        if appends.endpoints:
            add_endpoints(response, appends.endpoints)
        return response
    return DelayedProduce(appends, response).deferred


def _has_transactional_batch(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > ATTRIBUTES_LOW_BYTE
                and records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT  # type: ignore[index]
            ):
                return True
    return False


def _produce_in_transaction(
    appends: Appends,
) -> Now | Later:
    """Append once the transaction's coordinator has verified the partitions."""
    request = appends.request
    transactional_id = request.transactional_id
    if transactional_id is None or not is_allowed_on_transaction(
        appends.context, AclOperation.WRITE, transactional_id
    ):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        reason = "a transactional batch came without a transactional id"
        error = ApiError(code, reason if transactional_id is None else "")
        return _conclude(appends, refuse_all(request, error))
    batches = _transactional_batches(appends)
    producers = {(header.producer_id, header.producer_epoch) for _, header in batches.values()}
    if len(producers) > 1:
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        error = ApiError(code, "Transactional records contained more than one producer ID")
        return _conclude(appends, refuse_all(request, error))
    if all(_is_open(partition, header) for partition, header in batches.values()):
        return _produce(appends)  # as most are: only the first batch needs more
    transaction = Transaction(transactional_id, *producers.pop())
    return VerifiedProduce(appends).start(transaction, batches)


def _is_open(partition: Partition, header: BatchHeader) -> bool:
    producers = partition.log.producers
    return producers.has_open_transaction(header.producer_id, header.producer_epoch)


def _transactional_batches(appends: Appends) -> dict[Key, tuple[Partition, BatchHeader]]:
    """The headers of transactional batches for partitions led here that the client may write to."""
    replicas = appends.context.broker.replicas
    is_by_id = appends.context.api_version >= FIRST_VERSION_BY_ID
    found = {}
    for topic in appends.request.topic_data:
        if not may_write(appends.context, topic):
            continue
        name = replicas.names_by_id.get(topic.topic_id) if is_by_id else topic.name
        for data in topic.partition_data:
            partition = replicas.partition(name, data.index) if name is not None else None
            records = data.records
            if partition is None or not partition.is_leader or records is None:
                continue
            assert isinstance(records, memoryview)
            if len(records) < HEADER_BYTES:
                continue
            header = parse_header(records)
            if header.producer_id >= 0 and header.attributes & TRANSACTIONAL_BIT:
                found[partition.topic, data.index] = (partition, header)
    return found


def _hang_up_on_error(responses: list[ProduceResponse.Response]) -> None:
    for topic in responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise HangUp(
                    f"acks=0 produce to {topic.name}-{answer.index}: error {answer.error_code}"
                )


class VerifiedProduce:
    """A produce that is part of a transaction."""

    def __init__(self, appends: Appends) -> None:
        self._appends = appends

    def start(
        self, transaction: Transaction, batches: dict[Key, tuple[Partition, BatchHeader]]
    ) -> Now | Later:
        """Ask the coordinator, and append when it has answered, which is mostly at once."""
        version = self._appends.context.api_version
        support = Support.BASIC
        if version >= ADDS_PARTITIONS_SINCE:
            support = Support.ADDS_PARTITIONS
        elif version >= ABORTABLE_SINCE:
            support = Support.ABORTABLE
        first_sequences = {
            key: (partition, header.base_sequence) for key, (partition, header) in batches.items()
        }
        broker = self._appends.context.broker
        verified = Verification(broker, transaction, first_sequences, support).ask()
        if verified.is_complete:
            self._appends.verified = verified.value
            return _produce(self._appends)
        return verified.map(self._append)

    def _append(self, verified: Verified) -> Now | Deferred[Now]:
        """The coordinator has answered; not called once the client has hung up."""
        appends = self._appends
        appends.verified = verified
        appends.context = replace(appends.context, now_ms=appends.context.broker.clock.now_ms())
        return cast("Now | Deferred[Now]", _produce(appends))


class RecompressedProduce:
    """A produce with batches that have to be checked or recompressed before they are appended.

    Its `timeout_ms` does not count meanwhile, nor while a transaction is verified: as in Apache
    Kafka it begins with the wait for the replicas (`DelayedProduce`).
    """

    def __init__(self, appends: Appends, response: ProduceResponse) -> None:
        self.deferred: Deferred[Now] = Deferred()
        self._appends = appends
        self._response = response
        # Also after the client has hung up: with acks=0 it does so as soon as it has sent all.
        work = Recompressions(appends.context, appends.waiting, self._append)
        work.done.then(self.deferred.guard(self._conclude), self.deferred.fail)

    def _append(self, one: Recompression, result: Result) -> None:
        (data,) = one.topic.partition_data
        if isinstance(result, ApiError):
            one.answers[one.position] = refused(data.index, result)
            return
        appends = self._appends
        appends.context = replace(appends.context, now_ms=appends.context.broker.clock.now_ms())
        data.records = memoryview(result)
        appended = appends.append(one.topic, FROM_RECOMPRESSION)
        one.answers[one.position] = appended.partition_responses[0]

    def _conclude(self, _: None) -> None:
        outcome = _conclude(self._appends, self._response)
        if isinstance(outcome, Deferred):
            self.deferred.follow(cast("Deferred[Now]", outcome))
        else:
            self.deferred.complete(outcome)


class DelayedProduce:
    """A produce that waits for the in-sync replicas, or with acks=1 for this broker's disk.

    For `timeout_ms` at most, from when its last batch was appended.
    """

    def __init__(
        self,
        appends: Appends,
        response: ProduceResponse,
    ) -> None:
        self.deferred: Deferred[ProduceResponse] = Deferred(
            is_ordered_only=True, on_abandon=self._forget
        )
        self._context = appends.context
        self._is_acks_all = appends.request.acks == ACKS_ALL
        self._endpoints = appends.endpoints
        self._response = response
        self._waiting = {
            id(one.answer): (one.partition.topic, one.answer) for one in appends.pending
        }
        timers = appends.context.broker.timers
        self._timer: Cancellable = timers.schedule(appends.request.timeout_ms, self._expire)
        self._waits: list[CommitWaiter] = []
        for one in appends.pending:
            if self._waiting:  # else one before it has failed the request
                self._wait_for(one)

    def _wait_for(self, one: Uncommitted) -> None:
        """Wait for it, unless this broker has lost leadership since the append.

        It may have if batches were recompressed or the request was long: others were served then.
        """
        partition = one.partition
        committed = partial(self._committed, partition.topic, one.answer)
        if not partition.is_leader or partition.leader_epoch != one.leader_epoch:
            committed(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            wait = partition.when_committed if self._is_acks_all else partition.when_flushed
            self._waits.append(wait(one.end_offset, committed))

    def _committed(self, topic: str, answer: Answer, code: ErrorCode) -> None:
        """Raises nothing, as partitions demand: what goes wrong fails the whole request."""
        try:
            self._settle(topic, answer, code)
        except Exception as error:  # noqa: BLE001 - delivered
            self._forget()
            self.deferred.fail(error)

    def _settle(self, topic: str, answer: Answer, code: ErrorCode) -> None:
        if self._waiting.pop(id(answer), None) is None:
            return
        answer.error_code = code
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._endpoints = name_leader(self._context, topic, answer, self._endpoints)
        if not self._waiting:
            self._timer.cancel()
            add_endpoints(self._response, self._endpoints)
            self.deferred.complete(self._response)

    def _expire(self) -> None:
        self._cancel_waits()
        for topic, answer in list(self._waiting.values()):
            self._committed(topic, answer, ErrorCode.REQUEST_TIMED_OUT)

    def _cancel_waits(self) -> None:
        for wait in self._waits:
            wait.cancel()

    def _forget(self) -> None:
        self._cancel_waits()
        self._waiting.clear()
        self._timer.cancel()
