"""Fetch: read record batches from partitions of this broker, waiting for them if need be.

Versions 4 to 18. From v7 on in sessions (`broker.fetch.fetch_sessions`), from v13 on by topic id.

From v11 on a consumer may read from followers, up to the high watermark as they know it, and a
leader may redirect it to one (`broker.fetch.replica_selection`). From v16 on an answer names the
leader (`broker.handlers.records.current_leader`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.records.delayed_fetch import DelayedFetch
from broker.handlers.records.fetch_read import FetchRead
from broker.requests.api_table import handles
from broker.requests.steps import in_steps
from protocol.errors import ApiError
from protocol.messages.fetch import FetchRequest, FetchResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred


@handles(FetchRequest, versions="4-18")
def fetch(context: Context, request: FetchRequest) -> FetchResponse | Deferred[FetchResponse]:
    """Answer at once if `min_bytes` are there, a partition has an error, or `max_wait_ms` is 0."""
    try:
        opened = context.broker.fetch_sessions.open(request, context.api_version, context.now_ms)
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    read = FetchRead(context, request, opened)
    if read.is_by_follower and opened.session is not None:
        opened.session.fetched_ms = context.broker.clock.monotonic_ms()
        opened.session.broker_epoch = request.replica_state.replica_epoch
    if context.is_long:
        return _fetch_in_steps(context, request, read)
    read.run()
    timers, looks = context.broker.timers, context.broker.replicas.looks
    if request.max_wait_ms <= 0 or opened.is_empty:
        return read.response()
    if not read.is_satisfied:
        return DelayedFetch(timers, looks, read, request.max_wait_ms).deferred
    if read.may_be_held:
        return DelayedFetch(timers, looks, read, request.max_wait_ms, is_held=True).deferred
    return read.response()


@in_steps
def _fetch_in_steps(
    context: Context, request: FetchRequest, read: FetchRead
) -> Steps[FetchResponse | Deferred[FetchResponse]]:
    """As `fetch`, for a request that names many partitions."""
    yield from read.run_in_steps()
    if request.max_wait_ms > 0 and not read.is_satisfied:
        timers, looks = context.broker.timers, context.broker.replicas.looks
        delayed = DelayedFetch(timers, looks, read, request.max_wait_ms)
        delayed.look_again()  # for records appended to a partition after it was read
        return delayed.deferred
    return (yield from read.response_in_steps())
