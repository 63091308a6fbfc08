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
    from broker.fetch.fetch_sessions import Opened
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred


@handles(FetchRequest, versions="4-18")
def fetch(context: Context, request: FetchRequest) -> FetchResponse | Deferred[FetchResponse]:
    """Answer at once if `min_bytes` are there, a partition has an error, or `max_wait_ms` is 0."""
    if context.is_long:
        return _fetch_long(context, request)
    try:
        opened = context.broker.fetch_sessions.open(request, context.api_version, context.now_ms)
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    read = _begin(context, request, opened)
    if read.is_large:
        return _fetch_large(context, request, read)
    read.run()
    is_held = read.is_satisfied and read.may_be_held
    if request.max_wait_ms > 0 and not opened.is_empty and (is_held or not read.is_satisfied):
        timers, looks = context.broker.timers, context.broker.replicas.looks
        return DelayedFetch(timers, looks, read, request.max_wait_ms, is_held=is_held).deferred
    return read.response()


def _begin(context: Context, request: FetchRequest, opened: Opened) -> FetchRead:
    read = FetchRead(context, request, opened)
    if read.is_by_follower and opened.session is not None:
        opened.session.fetched_ms = context.broker.clock.monotonic_ms()
        opened.session.broker_epoch = request.replica_state.replica_epoch
    return read


@in_steps
def _fetch_long(
    context: Context, request: FetchRequest
) -> Steps[FetchResponse | Deferred[FetchResponse]]:
    """As `fetch`, for a request that names many partitions."""
    sessions = context.broker.fetch_sessions
    try:
        opened = yield from sessions.open_in_steps(request, context.api_version, context.now_ms)
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    return (yield from _fetch_in_steps(context, request, _begin(context, request, opened)))


def _fetch_in_steps(
    context: Context, request: FetchRequest, read: FetchRead
) -> Steps[FetchResponse | Deferred[FetchResponse]]:
    """As `fetch`, where many partitions are named, or are in the session."""
    yield from read.run_in_steps()
    is_held = read.is_satisfied and read.may_be_held
    if request.max_wait_ms > 0 and (is_held or not read.is_satisfied):
        timers, looks = context.broker.timers, context.broker.replicas.looks
        delayed = DelayedFetch(timers, looks, read, request.max_wait_ms, is_held=is_held)
        delayed.look_again()  # for records appended to a partition after it was read
        return delayed.deferred
    return (yield from read.response_in_steps())


_fetch_large = in_steps(_fetch_in_steps)
