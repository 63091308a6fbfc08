"""Effect of a quota on a consumer's fetch: it reads less, or gets nothing and is throttled.

A read is never larger than the quota allows in all its windows, else it would be throttled for
ever. A response beyond the quota is left out: the client asks again after the throttle time, and
its session is as if this request had found nothing new.

Source: KafkaApis.handleFetchRequest, FetchContext.getThrottledResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from broker.fetch.fetch_sessions import Opened
    from broker.fetch.fetched_partition import FetchedPartition
    from broker.requests.context import Context
    from broker.requests.request_meter import RequestMeter

Answered = tuple["FetchedPartition", FetchResponse.Response.Partition]

SIZE_BYTES = 4
"""In front of an answer; counted with it."""


def most_bytes(context: Context, wanted: int, is_by_follower: bool) -> int:
    """Maximum number of bytes to read. A follower is exempt from quotas."""
    most = min(wanted, context.broker.config.fetch_max_bytes)
    meter = context.meter
    if meter is None:
        return most
    meter.is_exempt |= is_by_follower
    allowed = None if is_by_follower else meter.most_fetched
    return most if allowed is None else min(most, allowed)


def throttled_response(
    meter: RequestMeter, context: Context, opened: Opened, answered: Iterable[Answered]
) -> FetchResponse | None:
    """The answer to a client that has to rest; None if these answers may be sent."""
    size = 0
    if meter.counts_fetched:
        size = _size(context.api_version, opened, answered)
    throttle_ms = meter.settle_fetch(size)
    if not throttle_ms:
        return None
    session_id = opened.session_id
    if opened.session is not None and not opened.is_incremental:
        context.broker.fetch_sessions.give_up(opened.session)
        session_id = 0
    return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=[])


def _size(version: int, opened: Opened, answered: Iterable[Answered]) -> int:
    """Bytes of the answer, as it would be."""
    topics: dict[str | UUID, FetchResponse.Response] = {}
    for wanted, answer in answered:
        if opened.is_incremental and not wanted.is_news(answer):
            continue
        topic = topics.setdefault(
            wanted.topic or wanted.topic_id,
            FetchResponse.Response(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[]),
        )
        topic.partitions.append(answer)
    response = FetchResponse(session_id=opened.session_id, responses=list(topics.values()))
    return SIZE_BYTES + sum(map(len, response.encode_parts(version)))
