"""Produce: append record batches to partitions that this broker leads.

Versions 3 to 13 are served; 0 to 2 are listed because librdkafka looks for them (KAFKA-18659), and
end the connection when sent. From v13 on topics are named by id.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from broker.deferred import Deferred
from broker.partition import ACKS_ALL
from broker.recompressing import Recompression, recompress_all
from broker.routing import HangUp, handles
from protocol.errors import ApiError, ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.batch import TRANSACTIONAL_BIT
from protocol.records.validation import OtherCodecError
from storage.producers import AppendOrigin

if TYPE_CHECKING:
    from uuid import UUID

    from broker.context import Context
    from broker.partition import Partition
    from broker.timers import Cancellable
    from protocol.schema import Part
    from storage.log import AppendInfo

Pending = tuple["Partition", int, "ProduceResponse.Response.PartitionResponse"]
"""A partition, the high watermark that its answer waits for, and the answer."""

Outcome = ProduceResponse | HangUp | None

Answer = ProduceResponse.Response.PartitionResponse
"""One partition's part of the answer."""

_NO_LEADER = Answer.CurrentLeader()
"""Shared by all answers, which it makes a third cheaper; never changed in place."""

_CLIENT = AppendOrigin.CLIENT
FIRST_VERSION_BY_ID = 13
VALID_ACKS = (-1, 0, 1)
ATTRIBUTES_LOW_BYTE = 22
"""Where in a batch its transactional flag is; the log checks all the rest of the batch."""
ADMIN_CLIENT_ID = "__admin_client"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})


@handles(ProduceRequest, versions="3-13", advertised="0-13")
def produce(
    context: Context, request: ProduceRequest
) -> ProduceResponse | Deferred[ProduceResponse] | Deferred[Outcome] | None:
    """Append, and answer when `acks` is satisfied. With acks=0 an error ends the connection."""
    pending: list[Pending] = []
    waiting: list[Recompression] = []
    responses = [
        _append_topic(context, request, topic, pending, waiting) for topic in request.topic_data
    ]
    response = ProduceResponse(responses=responses)
    if waiting:
        return RecompressedProduce(context, request, response, pending, waiting).deferred
    return _conclude(context, request, response, pending)


def _conclude(
    context: Context, request: ProduceRequest, response: ProduceResponse, pending: list[Pending]
) -> ProduceResponse | Deferred[ProduceResponse] | None:
    """After all that can be appended was."""
    if request.acks == 0:
        _hang_up_on_error(response.responses)
        return None
    if not pending:
        return response
    return DelayedProduce(context, response, pending, request.timeout_ms).deferred


def _append_topic(
    context: Context,
    request: ProduceRequest,
    topic: ProduceRequest.TopicData,
    pending: list[Pending],
    waiting: list[Recompression] | None,
) -> ProduceResponse.Response:
    """Append what has its topic's codec; the rest goes into `waiting`.

    Without `waiting`, all of `topic` has been recompressed.
    """
    origin = _CLIENT if waiting is not None else AppendOrigin.CHECKED
    replicas = context.broker.replicas
    name: str | None = topic.name
    if context.api_version >= FIRST_VERSION_BY_ID:
        name = replicas.names_by_id.get(topic.topic_id)
    partitions = replicas.by_topic.get(name, {}) if name is not None else {}
    refusal = _refusal(context, request, name)
    is_acks_all = request.acks == ACKS_ALL
    answers: list[Answer] = []
    for data in topic.partition_data:
        index = data.index
        partition = partitions.get(index)
        try:
            if partition is None:
                raise ApiError(_absent(context, name, topic.topic_id, index))
            if refusal is not None:
                raise refusal
            info = _append(context, request, partition, data.records, origin)
        except ApiError as error:
            answers.append(_refused(index, error))
            continue
        except OtherCodecError:
            assert partition is not None
            assert waiting is not None
            waiting.append(_recompression(topic, data, partition, answers))
            continue
        answer = Answer(
            index=index,
            error_code=0,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
            current_leader=_NO_LEADER,
        )
        answers.append(answer)
        if is_acks_all and partition.log.high_watermark <= info.last_offset:
            pending.append((partition, info.last_offset + 1, answer))
    return ProduceResponse.Response(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def _refusal(context: Context, request: ProduceRequest, topic: str | None) -> ApiError | None:
    """Why nothing of the request may be appended to any partition of `topic`."""
    if request.acks not in VALID_ACKS:
        return ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}")
    if topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by brokers only")
    return None


def _append(
    context: Context,
    request: ProduceRequest,
    partition: Partition,
    records: Part | None,
    origin: AppendOrigin,
) -> AppendInfo:
    if records is None:
        raise ApiError(ErrorCode.INVALID_RECORD, "there is no record batch")
    assert isinstance(records, memoryview)
    if len(records) > ATTRIBUTES_LOW_BYTE and records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT:
        raise _no_transaction(request.transactional_id)
    return partition.append_records(
        records, request.acks, origin, context.now_ms, context.api_version
    )


def _recompression(
    topic: ProduceRequest.TopicData,
    data: ProduceRequest.TopicData.PartitionData,
    partition: Partition,
    answers: list[Answer],
) -> Recompression:
    """Note what waits, with a place for its answer."""
    assert isinstance(data.records, memoryview)
    alone = ProduceRequest.TopicData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[ProduceRequest.TopicData.PartitionData(index=data.index, records=None)],
    )
    answers.append(Answer(index=data.index, error_code=0, base_offset=-1))
    rules = partition.log.produce_rules
    return Recompression(alone, bytearray(data.records), rules, answers, len(answers) - 1)


def _no_transaction(transactional_id: str | None) -> ApiError:
    """What a transactional batch gets while transactions are not served (GAPS.md)."""
    if transactional_id is None:
        return ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "a transactional batch came without a transactional id",
        )
    return ApiError(
        ErrorCode.INVALID_TXN_STATE,
        f"the partition was not added to a transaction of {transactional_id!r}",
    )


def _absent(context: Context, name: str | None, topic_id: UUID, index: int) -> ErrorCode:
    """The code for a partition that is not here: another broker may have it, or nobody."""
    if name is None:
        name = context.broker.metadata.topic_name(topic_id)
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    if context.broker.metadata.partition(name, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _refused(index: int, error: ApiError) -> Answer:
    answer = Answer(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=error.message or None,
    )
    answer.record_errors = [
        Answer.RecordError(batch_index=number, batch_index_error_message=message)
        for number, message in getattr(error, "record_errors", ())
    ]
    return answer


def _hang_up_on_error(responses: list[ProduceResponse.Response]) -> None:
    for topic in responses:
        for answer in topic.partition_responses:
            if answer.error_code:
                raise HangUp(
                    f"acks=0 produce to {topic.name}-{answer.index}: error {answer.error_code}"
                )


class RecompressedProduce:
    """A produce with batches that come to be appended once they have their topic's codec."""

    def __init__(
        self,
        context: Context,
        request: ProduceRequest,
        response: ProduceResponse,
        pending: list[Pending],
        waiting: list[Recompression],
    ) -> None:
        self.deferred: Deferred[Outcome] = Deferred(on_abandon=self._forget)
        self._context = context
        self._request = request
        self._response = response
        self._pending = pending
        self._waiting = waiting
        self._is_abandoned = False
        recompress_all(context, waiting, self._append)

    def _append(self, results: list[bytearray | ApiError]) -> None:
        if self._is_abandoned:
            return  # nobody would know of the append, and the logs may be closed by now
        context = replace(self._context, now_ms=self._context.broker.clock.now_ms())
        for one, result in zip(self._waiting, results, strict=True):
            (data,) = one.topic.partition_data
            if isinstance(result, ApiError):
                one.answers[one.position] = _refused(data.index, result)
                continue
            data.records = memoryview(result)
            appended = _append_topic(context, self._request, one.topic, self._pending, None)
            one.answers[one.position] = appended.partition_responses[0]
        try:
            outcome = _conclude(context, self._request, self._response, self._pending)
        except HangUp as reason:
            self._complete(reason)
            return
        if isinstance(outcome, Deferred):
            outcome.then(self._complete)
        else:
            self._complete(outcome)

    def _complete(self, outcome: Outcome) -> None:
        self.deferred.complete(outcome)

    def _forget(self) -> None:
        self._is_abandoned = True


class DelayedProduce:
    """An acks=all produce that waits for the in-sync replicas."""

    def __init__(
        self,
        context: Context,
        response: ProduceResponse,
        pending: list[Pending],
        timeout_ms: int,
    ) -> None:
        self.deferred: Deferred[ProduceResponse] = Deferred(
            is_ordered_only=True, on_abandon=self._forget
        )
        self._response = response
        self._waiting = {id(answer): answer for _, _, answer in pending}
        self._timer: Cancellable = context.broker.timers.schedule(timeout_ms, self._expire)
        for partition, offset, answer in pending:
            partition.when_committed(offset, partial(self._settle, answer))

    def _settle(self, answer: Answer, code: ErrorCode) -> None:
        if self._waiting.pop(id(answer), None) is None:
            return
        answer.error_code = code
        if not self._waiting:
            self._timer.cancel()
            self.deferred.complete(self._response)

    def _expire(self) -> None:
        for answer in list(self._waiting.values()):
            self._settle(answer, ErrorCode.REQUEST_TIMED_OUT)

    def _forget(self) -> None:
        self._waiting.clear()
        self._timer.cancel()
