"""Requests counted as they are served: how many, how large, how long, with which errors.

A dispatcher that counts takes the place of the plain one when metrics are wanted; else requests
pass nothing of this. The numbers are plain integers, which the endpoint's thread reads.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.network.connection import SIZE_BYTES
from broker.requests.api_table import ROUTES
from broker.requests.dispatch import Dispatcher
from broker.requests.versioned_route import VersionedRoute
from broker.runtime.deferred import Deferred
from protocol.messages.fetch import FetchResponse
from protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.network.client import Client
    from broker.network.connection import Connection
    from broker.requests.api_table import Route
    from broker.requests.services import BrokerServices
    from protocol.schema import Part, Response

SECOND_NS = 1_000_000_000
BOUNDS_SECONDS = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
_BOUNDS_NS = tuple(int(bound * SECOND_NS) for bound in BOUNDS_SECONDS)
_API_KEY_BYTES = 2


class RequestCounts:
    """Counts of one kind of request."""

    __slots__ = (
        *("errors", "local_ns", "request_bytes", "requests"),
        *("response_bytes", "total_ns", "within"),
    )

    def __init__(self) -> None:
        self.requests = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.local_ns = 0
        """Time in which the event loop did nothing else."""
        self.total_ns = 0
        """As `local_ns`, plus the time waited for records, commits or other members."""
        self.within = [0] * (len(_BOUNDS_NS) + 1)
        """Requests by total time: those within each bound and beyond the one before, the rest."""
        self.errors: Counter[int] = Counter()
        """By error code; per partition for Produce and Fetch, per request for others."""

    def note_time(self, took_ns: int) -> None:
        """Count a request that is done with."""
        self.total_ns += took_ns
        self.within[bisect_left(_BOUNDS_NS, took_ns)] += 1


class CountingDispatcher(Dispatcher):
    """Serves frames as `Dispatcher` does, and counts."""

    def __init__(self, broker: BrokerServices) -> None:
        super().__init__(broker)
        self.counts = {key: RequestCounts() for key in sorted(ROUTES)}
        """By API key. Each kind has one from the start, for concurrent readers."""

    def dispatch(
        self, frame: memoryview, peer: Client, connection: Connection
    ) -> list[Part] | Deferred[list[Part] | None] | None:
        """Serve one frame. An answer to come is counted when it is there."""
        counts = self.counts.get(int.from_bytes(frame[:_API_KEY_BYTES], "big"))
        if counts is None:
            return super().dispatch(frame, peer, connection)
        began_ns = time.perf_counter_ns()
        counts.requests += 1
        counts.request_bytes += SIZE_BYTES + len(frame)
        answer = super().dispatch(frame, peer, connection)
        took_ns = time.perf_counter_ns() - began_ns
        counts.local_ns += took_ns
        if isinstance(answer, Deferred):
            return answer.map(partial(_pass_on, counts, began_ns))
        counts.note_time(took_ns)
        return answer

    def _make(self, route: Route, version: int) -> VersionedRoute:
        return CountingRoute(route, version, self.counts[int(route.request.API_KEY)])


class CountingRoute(VersionedRoute):
    """Counts the errors and the bytes of answers as they are made."""

    __slots__ = ("_counts",)

    def __init__(self, route: Route, version: int, counts: RequestCounts) -> None:
        super().__init__(route, version)
        self._counts = counts

    def note(self, response: Response) -> None:
        """Count the errors of an answer."""
        for code in _error_codes(response):
            if code:
                self._counts.errors[code] += 1

    def respond(self, correlation_id: int, response: Response) -> list[Part]:
        """Make the bytes of an answer, which begin with their number."""
        self.note(response)
        parts = super().respond(correlation_id, response)
        front: Any = parts[0]
        self._counts.response_bytes += SIZE_BYTES + int.from_bytes(front[:SIZE_BYTES], "big")
        return parts


def _pass_on(counts: RequestCounts, began_ns: int, parts: list[Part] | None) -> list[Part] | None:
    counts.note_time(time.perf_counter_ns() - began_ns)
    return parts


def _error_codes(response: object) -> Iterator[int]:
    if isinstance(response, ProduceResponse):
        for produced in response.responses:
            for answer in produced.partition_responses:
                yield answer.error_code
        return
    if isinstance(response, FetchResponse):
        for fetched in response.responses:
            for partition in fetched.partitions:
                yield partition.error_code
    yield getattr(response, "error_code", 0)
