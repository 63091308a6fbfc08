"""ShareFetch: acquire records of share-partitions, acknowledging earlier ones (KIP-932).

Versions 1 and 2; v2 the record limit (KIP-1206) and renewals (KIP-1222), which fetch nothing, so
that the answer is there before the locks expire. A session says which partitions are read
(`broker.share_partitions.share_sessions`); its request of epoch -1 ends it, and releases what its
member still holds. Source: `KafkaApis.handleShareFetchRequest` in Apache Kafka 4.3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.handlers.share_groups.acknowledgements import Acknowledgements
from broker.handlers.share_groups.delayed_share_fetch import DelayedShareFetch
from broker.handlers.share_groups.membership import checked_member
from broker.handlers.share_groups.share_read import EMPTY, Answer, Fetched, ShareRead
from broker.handlers.share_groups.topic_access import TopicAccess
from broker.requests.api_table import handles
from broker.requests.steps import in_appending_steps, in_steps
from broker.runtime.deferred import Deferred, in_background
from broker.share_partitions.share_sessions import (
    CLOSING_EPOCH,
    OPENING_EPOCH,
    TopicPartition,
)
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.handlers.share_groups.acknowledgements import Batches, Outcomes
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.share_partitions.share_sessions import Member, ShareSession, ShareSessions

Topic = ShareFetchResponse.Response
NAMED_AT_ONCE: Final = 16
"""Partitions that are noted in one step, of twenty microseconds."""
NO_RECORDS_WITH_RENEWAL: Final = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
"""Fields that are 0 in a request that renews locks."""


@handles(ShareFetchRequest, versions="1-2")
@in_steps
def share_fetch(
    context: Context, request: ShareFetchRequest
) -> Steps[ShareFetchResponse | Deferred[ShareFetchResponse]]:
    """Answered when there are records or the wait is over, and the acknowledgements are stored."""
    member = checked_member(context, request.group_id, request.member_id)
    _check_renewal(request)
    has_acknowledgements = yield from _has_acknowledgements(request)
    try:
        session = yield from _session(context, request, member, has_acknowledgements)
    except ApiError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _refused_later(context, request.max_wait_ms, error)
        raise
    access = TopicAccess(context)
    acknowledging = Acknowledgements(context, member, access, is_renewal=request.is_renew_ack)
    for count, (wanted, batches) in enumerate(_named(request)):
        if batches:
            yield from acknowledging.add(wanted, batches)
            yield
        elif not count % NAMED_AT_ONCE:
            yield
    acknowledging.close()
    outcomes = acknowledging.outcomes
    if request.share_session_epoch == CLOSING_EPOCH:
        return outcomes.map(lambda known: _closed(context, request, session, known))
    fetched = _fetch(context, request, ShareRead(context, request, session, access))
    if not has_acknowledgements:
        return fetched.map(lambda found: _response(context, request, found, {}))
    return fetched.map(
        lambda found: outcomes.map(lambda known: _response(context, request, found, known))
    )


def _check_renewal(request: ShareFetchRequest) -> None:
    if request.is_renew_ack:
        named = [name for name in NO_RECORDS_WITH_RENEWAL if getattr(request, name)]
        if named:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"a renewal with {', '.join(named)} other than 0"
            )


def _named(request: ShareFetchRequest) -> Iterator[tuple[TopicPartition, Batches]]:
    """The partitions of a request, with their acknowledgements."""
    for topic in request.topics:
        for partition in topic.partitions:
            named = TopicPartition(topic.topic_id, partition.partition_index)
            yield named, partition.acknowledgement_batches


def _has_acknowledgements(request: ShareFetchRequest) -> Steps[bool]:
    for count, (_, batches) in enumerate(_named(request)):
        if batches:
            return True
        if not count % NAMED_AT_ONCE:
            yield
    return False


def _session(
    context: Context, request: ShareFetchRequest, member: Member, has_acknowledgements: bool
) -> Steps[ShareSession]:
    """The session of the request, with the partitions that it adds and forgets."""
    sessions = context.broker.share_partitions.sessions
    epoch = request.share_session_epoch
    if epoch != OPENING_EPOCH:
        session = sessions.require(member, epoch)
        if epoch != CLOSING_EPOCH:
            yield from _added(sessions, session, request)
            yield from _forgotten(sessions, session, request)
        return session
    if has_acknowledgements:
        raise ApiError(ErrorCode.INVALID_REQUEST, "acknowledgements before any record")
    session = sessions.open(member, context.client)
    try:
        yield from _added(sessions, session, request)
    except ApiError:
        sessions.remove(session)
        raise
    return session


def _added(
    sessions: ShareSessions, session: ShareSession, request: ShareFetchRequest
) -> Steps[None]:
    for count, (named, _) in enumerate(_named(request)):
        sessions.add(session, named)
        if not count % NAMED_AT_ONCE:
            yield


def _forgotten(
    sessions: ShareSessions, session: ShareSession, request: ShareFetchRequest
) -> Steps[None]:
    for topic in request.forgotten_topics_data:
        for count, index in enumerate(topic.partitions):
            sessions.forget(session, TopicPartition(topic.topic_id, index))
            if not count % NAMED_AT_ONCE:
                yield


def _refused_later(context: Context, wait_ms: int, error: ApiError) -> Deferred[ShareFetchResponse]:
    """The error after the time that the client would wait for records, as it asks again at once."""

    async def refuse() -> ShareFetchResponse:
        await context.broker.timers.sleep(max(0, wait_ms))
        raise error

    return in_background(context.broker.spawn, refuse(), "share session refused")


def _fetch(context: Context, request: ShareFetchRequest, read: ShareRead) -> Deferred[Fetched]:
    fetched = _looked(context, request, read)
    if isinstance(fetched, Deferred):
        return fetched
    at_once: Deferred[Fetched] = Deferred()
    at_once.complete(fetched)
    return at_once


@in_appending_steps
def _looked(
    context: Context, request: ShareFetchRequest, read: ShareRead
) -> Steps[Fetched | Deferred[Fetched]]:
    """Records acquired, now or later; the first look at a partition takes a step of its own."""
    if request.is_renew_ack or read.is_empty:
        return Fetched({}, {})
    yield from read.begin()
    read.run()
    if read.is_satisfied or read.max_wait_ms <= 0:
        return read.acquired()
    looks = context.broker.replicas.looks
    return DelayedShareFetch(context.broker.timers, looks, read).deferred


def _closed(
    context: Context, request: ShareFetchRequest, session: ShareSession, known: Outcomes
) -> ShareFetchResponse | Deferred[ShareFetchResponse]:
    context.broker.share_partitions.end_session(session)
    return _response(context, request, Fetched({}, {}), known)


@in_steps
def _response(
    context: Context, request: ShareFetchRequest, fetched: Fetched, known: Outcomes
) -> Steps[ShareFetchResponse]:
    answers = fetched.answers
    for wanted, error in known.items():
        answer = answers.get(wanted)
        if answer is None:
            answer = answers[wanted] = Answer(
                partition_index=wanted.partition,
                error_code=ErrorCode.NONE,
                acknowledge_error_code=ErrorCode.NONE,
                current_leader=Answer.CurrentLeader(leader_id=0, leader_epoch=0),
                records=EMPTY,
                acquired_records=[],
            )
        if error is not None:
            answer.acknowledge_error_code = error.code
            answer.acknowledge_error_message = error.message
        yield
    topics: dict[object, Topic] = {}
    for wanted, answer in answers.items():
        topic = topics.get(wanted.topic_id)
        if topic is None:
            topic = topics[wanted.topic_id] = Topic(topic_id=wanted.topic_id, partitions=[])
        topic.partitions.append(answer)
        yield
    groups = context.broker.share_partitions.groups
    return ShareFetchResponse(
        throttle_time_ms=fetched.throttle_ms,
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=groups.settings_of(
            request.group_id or ""
        ).record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=list(fetched.endpoints.values()),
    )
