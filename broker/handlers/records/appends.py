"""Appends the batches of a produce request to the partitions that this broker leads."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.handlers.records.current_leader import current_leader
from broker.handlers.records.local_replica import absence_error
from broker.handlers.records.recompression import Recompression
from broker.replication.replica_machine import ACKS_ALL
from broker.requests.authorization import is_allowed
from broker.runtime.slices import BUDGET_MS
from controller.topics.topic_names import INTERNAL_TOPICS
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.validation import AsideError
from storage.append.append_source import AppendOrigin, AppendSource

if TYPE_CHECKING:
    from uuid import UUID

    from broker.handlers.records.transaction_verification import Verified
    from broker.partitions.partition import Partition
    from broker.requests.context import Context
    from protocol.schema import Part
    from storage.append.append_info import AppendInfo

Answer = ProduceResponse.Response.PartitionResponse
"""One partition's part of the answer."""

Endpoints = Mapping[int, ProduceResponse.NodeEndpoint]
"""Endpoints of brokers, by id."""

EMPTY: Final[Endpoints] = {}
_NO_LEADER: Final = Answer.CurrentLeader()
"""Shared by all answers, which it makes a third cheaper; never changed in place."""

ADDS_PARTITIONS_SINCE: Final = 12
"""The version whose clients follow version 2 of the transaction protocol (KIP-890)."""
FIRST_VERSION_BY_ID: Final = 13
FIRST_VERSION_WITH_LEADERS: Final = 10
VALID_ACKS: Final = (-1, 0, 1)
UNTIMED_BATCHES: Final = 8
"""Batches between two looks at the clock. Fixed: most requests have fewer, and pay for none."""

ADMIN_CLIENT_ID: Final = "__admin_client"

_NOT_NOW: Final = {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""Errors of a transaction's coordinator that a producer does not expect, but retries after."""


_REFUSED_BY_LOG: Final = {
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class NotVerifiedError(ApiError):
    """The transaction coordinator has not verified the partition; the log was not consulted."""


class Uncommitted(NamedTuple):
    """A batch that is appended to a partition, and not committed or not on the disk yet."""

    partition: Partition
    end_offset: int
    """Offset after its last record, which the high watermark must reach for the response."""
    leader_epoch: int
    """The epoch it was appended in; in a later one, other records may have its offsets."""
    answer: Answer


class Appends:
    """The appends of one request, and what its answer waits for."""

    __slots__ = (
        "_began_ms",
        "_count",
        "_source",
        "context",
        "endpoints",
        "is_late",
        "pending",
        "request",
        "verified",
        "waiting",
    )

    def __init__(self, context: Context, request: ProduceRequest) -> None:
        self.context = context
        self.request = request
        self.pending: list[Uncommitted] = []
        self.waiting: list[Recompression] = []
        """Batches that are checked or recompressed beside the loop before they can be appended."""
        self.endpoints: Endpoints = EMPTY
        """Endpoints of the leaders named in the response."""
        self.verified: Verified | None = None
        """The answer of the transaction's coordinator, if the request is part of one."""
        self.is_late = False
        """True if `append_all` has left batches to later turns of the loop."""
        self._count = 0
        self._began_ms = 0
        self._source = _client_source(context.api_version)

    def append_all(self) -> ProduceResponse:
        """Append the batches that are quickly checked; the others go into `waiting`.

        When `is_late`, it has stopped after some: `append_rest` appends the others.
        """
        response = ProduceResponse(responses=[])
        for topic in self.request.topic_data:
            answers: list[Answer] = []
            response.responses.append(_response(topic, answers))
            self._append_in_time(topic, answers)
            if self.is_late:
                break
        return response

    def _append_in_time(self, topic: ProduceRequest.TopicData, answers: list[Answer]) -> None:
        """Append to one topic, with a look at the clock now and then."""
        batches = topic.partition_data
        begin, count = 0, len(batches)
        if not self._count and count <= UNTIMED_BATCHES:  # as nearly always: no look is due
            begin = self._count = count
            self._append_some(topic, batches, answers, self._source)
        while begin < count:
            looks_in = UNTIMED_BATCHES - self._count % UNTIMED_BATCHES
            if looks_in == UNTIMED_BATCHES and self._count and self._has_taken_long():
                return
            end = min(begin + looks_in, count)
            self._append_some(topic, batches[begin:end], answers, self._source)
            self._count += end - begin
            begin = end

    def append_rest(self, response: ProduceResponse) -> Generator[None, None, None]:
        """Append in steps the batches not in `response` yet: all of them, if that is empty.

        Others are served between two steps, so the total time is irrelevant.
        """
        for position, topic in enumerate(self.request.topic_data):
            if position == len(response.responses):
                response.responses.append(_response(topic, []))
            answers = response.responses[position].partition_responses
            for data in topic.partition_data[len(answers) :]:
                self._append_some(topic, (data,), answers, self._source)
                yield
            yield

    def append(
        self, topic: ProduceRequest.TopicData, source: AppendSource
    ) -> ProduceResponse.Response:
        """Append to one topic. With the origin CHECKED, all its batches have been in `waiting`."""
        answers: list[Answer] = []
        self._append_some(topic, topic.partition_data, answers, source)
        return _response(topic, answers)

    def _append_some(
        self,
        topic: ProduceRequest.TopicData,
        some: Sequence[ProduceRequest.TopicData.PartitionData],
        answers: list[Answer],
        source: AppendSource,
    ) -> None:
        context, request = self.context, self.request
        if context.broker.authorizer is not None and not may_write(context, topic):
            error = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            answers += [refused(data.index, error) for data in some]
            return
        replicas = context.broker.replicas
        name: str | None = topic.name
        if context.api_version >= FIRST_VERSION_BY_ID:
            name = replicas.names_by_id.get(topic.topic_id)
        partitions = replicas.by_topic.get(name, {}) if name is not None else {}
        refusal = _refusal(context, request, name)
        is_acks_all = request.acks == ACKS_ALL
        for data in some:
            index = data.index
            partition = partitions.get(index)
            try:
                if partition is None:
                    raise ApiError(_absent(context, name, topic.topic_id, index))
                if refusal is not None:
                    answers.append(self._refused(topic, index, partition, refusal))
                    continue
                if self.verified is None:
                    info = self._append(partition, data.records, source)
                else:
                    info = self._append_verified(partition, data.records, source)
            except ApiError as error:
                answers.append(self._refused(topic, index, partition, error))
                continue
            except AsideError:
                assert partition is not None
                self.waiting.append(_recompression(topic, data, partition, answers))
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
            if (
                partition.log.high_watermark <= info.last_offset
                if is_acks_all
                else partition.durability is not None
            ):
                end_offset = info.last_offset + 1
                self.pending.append(
                    Uncommitted(partition, end_offset, partition.leader_epoch, answer)
                )

    def _refused(
        self,
        topic: ProduceRequest.TopicData,
        index: int,
        partition: Partition | None,
        error: ApiError,
    ) -> Answer:
        answer = refused(index, error)
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            metadata = self.context.broker.metadata
            known = topic.name or metadata.topic_name(topic.topic_id)
            name = known if partition is None else partition.topic
            self.endpoints = name_leader(self.context, name, answer, self.endpoints)
        if partition is not None and _is_by_log(error):
            answer.log_start_offset = partition.log.log_start_offset
        return answer

    def _append(
        self, partition: Partition, records: Part | None, source: AppendSource
    ) -> AppendInfo:
        if records is None:
            raise ApiError(ErrorCode.INVALID_RECORD, "there is no record batch")
        assert isinstance(records, memoryview)
        return partition.append_records(records, self.request.acks, source, self.context.now_ms)

    def _has_taken_long(self) -> bool:
        """Return whether the rest of the request is left to later turns of the loop."""
        now_ms = self.context.broker.clock.monotonic_ms()
        if self._count == UNTIMED_BATCHES:
            self._began_ms = now_ms
        self.is_late = now_ms - self._began_ms >= BUDGET_MS
        return self.is_late

    def _append_verified(
        self, partition: Partition, records: Part | None, source: AppendSource
    ) -> AppendInfo:
        """Append if the coordinator has verified the partition, or no longer needs to."""
        assert self.verified is not None
        key = (partition.topic, partition.index)
        code = self.verified.errors.get(key)
        if code is not None:
            raise _not_verified(code, self.context.api_version)
        guard = self.verified.guards.get(key)
        guarded = source if guard is None else source._replace(guard=guard)
        return self._append(partition, records, guarded)


@cache
def _client_source(api_version: int) -> AppendSource:
    """One for each version of Produce."""
    return AppendSource(AppendOrigin.CLIENT, api_version)


def _response(topic: ProduceRequest.TopicData, answers: list[Answer]) -> ProduceResponse.Response:
    return ProduceResponse.Response(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def refuse_all(request: ProduceRequest, error: ApiError) -> ProduceResponse:
    """The same error for all partitions of a request."""
    return ProduceResponse(
        responses=[
            ProduceResponse.Response(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[refused(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def refused(index: int, error: ApiError) -> Answer:
    """The answer for a partition to which nothing was appended."""
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


def name_leader(
    context: Context, topic: str | None, answer: Answer, endpoints: Endpoints
) -> Endpoints:
    """Name the leader in an answer with NOT_LEADER_OR_FOLLOWER (`current_leader`).

    Returns `endpoints` with the leader's added, for `add_endpoints` to put into the response.
    """
    if context.api_version < FIRST_VERSION_WITH_LEADERS:
        return endpoints
    leader_id, leader_epoch, node = current_leader(context, topic, answer.index)
    answer.current_leader = Answer.CurrentLeader(leader_id=leader_id, leader_epoch=leader_epoch)
    if node is None:
        return endpoints
    endpoint = ProduceResponse.NodeEndpoint(
        node_id=node.id, host=node.host, port=node.port, rack=node.rack
    )
    return {**endpoints, node.id: endpoint}


def add_endpoints(response: ProduceResponse, endpoints: Endpoints) -> None:
    """Add the endpoints of the leaders that the answers name."""
    if endpoints:
        response.node_endpoints = list(endpoints.values())


def _refusal(context: Context, request: ProduceRequest, topic: str | None) -> ApiError | None:
    """Reason why no partition of `topic` in the request may be appended to."""
    if request.acks not in VALID_ACKS:
        return ApiError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks}")
    if topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by brokers only")
    return None


def _is_by_log(error: ApiError) -> bool:
    """Return whether the log refused: the response then has its start offset, as in Apache."""
    return error.code in _REFUSED_BY_LOG and not isinstance(error, NotVerifiedError)


def _not_verified(code: ErrorCode, api_version: int) -> NotVerifiedError:
    if code is ErrorCode.INVALID_TXN_STATE:
        return NotVerifiedError(code, "Partition was not added to the transaction")
    is_ending = code is ErrorCode.CONCURRENT_TRANSACTIONS
    if code in _NOT_NOW or (is_ending and api_version < ADDS_PARTITIONS_SINCE):
        return NotVerifiedError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return NotVerifiedError(code)


def _recompression(
    topic: ProduceRequest.TopicData,
    data: ProduceRequest.TopicData.PartitionData,
    partition: Partition,
    answers: list[Answer],
) -> Recompression:
    """Note a batch that has to wait, with a place for its answer: an error until it is appended."""
    assert isinstance(data.records, memoryview)
    alone = ProduceRequest.TopicData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[ProduceRequest.TopicData.PartitionData(index=data.index, records=None)],
    )
    code = ErrorCode.UNKNOWN_SERVER_ERROR
    answers.append(Answer(index=data.index, error_code=code, base_offset=-1))
    rules = partition.log.produce_rules
    return Recompression(alone, data.records, rules, answers, len(answers) - 1)


def may_write(context: Context, topic: ProduceRequest.TopicData) -> bool:
    """Return whether the client may write to a topic. True for unknown ids, a separate error."""
    name: str | None = topic.name
    if context.api_version >= FIRST_VERSION_BY_ID:
        name = context.broker.metadata.topic_name(topic.topic_id)
    return name is None or is_allowed(context, AclOperation.WRITE, ResourceType.TOPIC, name)


def _absent(context: Context, name: str | None, topic_id: UUID, index: int) -> ErrorCode:
    """The error for a partition without a replica here: other brokers may have one, or none."""
    if name is None:
        name = context.broker.metadata.topic_name(topic_id)
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    return absence_error(context.broker, name, index)
