"""Cost of one request to its client's quotas, and the resulting throttle time.

The response is sent at once, with the throttle time, during which the connection reads no further
request, whether or not the client heeds it (KIP-219). If several quotas are exceeded, the longest
throttle time applies. While no quota is set, no meter is created.

The request time is the time for which it occupies the event loop. Background work, such as topic
creation, is not counted.

Source: kafka.server.RequestHandlerHelper; KafkaApis.handleProduceRequest, handleFetchRequest.
"""

from __future__ import annotations

import copy
import struct as structs
import time
from typing import TYPE_CHECKING, TypeVar, cast

from broker.requests.encoded_response import EncodedResponse
from protocol.api_keys import ApiKey
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.quotas.client_quotas import ClientQuotas
    from broker.quotas.meters import Metered, Meters
    from broker.quotas.sampled_rate import SampledRate
    from broker.quotas.token_bucket import TokenBucket
    from broker.requests.context import Context
    from broker.requests.versioned_route import VersionedRoute
    from broker.runtime.clock import Clock
    from protocol.schema import Response

R = TypeVar("R", bound="Response")

THROTTLE_TIME = "throttle_time_ms"
_INT32 = structs.Struct(">i")
PERCENT_PER_NS = 100 / 1_000_000_000
STRICT_SINCE = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""The versions from which on changes beyond the quota are refused; older ones make the client rest.

Their clients know THROTTLING_QUOTA_EXCEEDED.
"""


class RequestMeter:
    """Made for each request while any quota is set; the context has it."""

    __slots__ = (
        *("_began_ns", "_busy_ns", "_client_id", "_clock", "_connection", "_is_settled"),
        *("_changes_until_ms", "_produced", "_quotas", "_served", "_user", "_version", "is_exempt"),
    )

    def __init__(
        self, quotas: ClientQuotas, served: VersionedRoute, context: Context, connection: Connection
    ) -> None:
        self._began_ns = time.perf_counter_ns()
        self._busy_ns = 0
        self._quotas = quotas
        self._served = served
        self._version = context.api_version
        self._clock: Clock = context.broker.clock
        self._user = context.principal.partition(":")[2]
        self._client_id = context.client_id or ""
        self._connection = connection
        self._produced = 0
        self._changes_until_ms = 0
        """Time at which the client may change metadata again; 0 if it may now."""
        self._is_settled = False
        route = served.route
        self.is_exempt = route.is_for_clusters or route.request.API_KEY == ApiKey.WRITE_TXN_MARKERS
        """True if its time is not charged: it is a request of another broker."""

    def note_size(self, size: int) -> None:
        """The bytes of the request with its header: those of Produce count."""
        if self._served.route.request.API_KEY == ApiKey.PRODUCE:
            self._produced = size

    def pause(self) -> None:
        """The request waits from now on."""
        self._busy_ns += time.perf_counter_ns() - self._began_ns

    def resume(self) -> None:
        """Resume the time measurement after a wait."""
        self._began_ns = time.perf_counter_ns()

    # Changes to the metadata

    @property
    def counts_mutations(self) -> bool:
        """True if the client has a controller mutation quota."""
        return self._quotas.mutation.of(self._user, self._client_id) is not None

    @property
    def must_wait_to_change(self) -> bool:
        """True if the client has used up its controller mutation quota."""
        metered = self._quotas.mutation.of(self._user, self._client_id)
        if metered is None:
            return False
        return metered.meter.throttle_ms(metered.limit, self._clock.monotonic_ms()) > 0

    def note_mutations(self, count: int) -> None:
        """Count partitions that are created or deleted.

        Raises ApiError THROTTLING_QUOTA_EXCEEDED if the client has to wait before that, and its
        request is of a version that knows the error.
        """
        metered = self._quotas.mutation.of(self._user, self._client_id)
        if metered is None:
            return
        bucket, limit = metered
        now_ms = self._clock.monotonic_ms()
        throttle_ms = bucket.throttle_ms(limit, now_ms) if self._is_strict else 0
        if not throttle_ms:
            bucket.record(count, limit, now_ms)
            throttle_ms = 0 if self._is_strict else bucket.throttle_ms(limit, now_ms)
        if throttle_ms:
            self._changes_until_ms = now_ms + throttle_ms
        if throttle_ms and self._is_strict:
            raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    @property
    def _is_strict(self) -> bool:
        """Also when a topic is created on first use, as by Apache Kafka with KRaft."""
        key = ApiKey(self._served.route.request.API_KEY)
        return self._version >= STRICT_SINCE.get(key, 0)

    # The end of a request

    def settle(self, response: R | None) -> R | None:
        """Charge the request to the quotas; return the response with its throttle time, if any.

        None stands for no response; the time of such a request does not count.
        """
        if self._is_settled:
            return response
        self._is_settled = True
        now_ms = self._clock.monotonic_ms()
        throttles: list[tuple[int, Meters[SampledRate] | Meters[TokenBucket]]] = [
            (max(0, self._changes_until_ms - now_ms), self._quotas.mutation),
            (self._use(self._quotas.produce, self._produced, now_ms), self._quotas.produce),
        ]
        if response is not None and not self.is_exempt:
            throttles.append((self._use_time(now_ms), self._quotas.request))
        throttle_ms = self._rest(throttles)
        if response is None or not throttle_ms:
            return response
        return self._throttled(response, throttle_ms)

    def _throttled(self, response: R, milliseconds: int) -> R:
        """A copy of the answer that names this time: others may be given the same answer."""
        cls = self._served.route.request.RESPONSE
        names = [field.name for field in cls.FIELDS if self._version in field.versions]
        if THROTTLE_TIME not in names:
            return response
        made: object = response
        if isinstance(made, EncodedResponse):
            assert names[0] == THROTTLE_TIME, f"{cls.__name__} does not begin with it"
            return cast("R", made.beginning_with(_INT32.pack(milliseconds)))
        throttled = copy.copy(response)
        setattr(throttled, THROTTLE_TIME, milliseconds)
        return throttled

    def settle_fetch(self, size: int) -> int:
        """Count an answer of `size` bytes to a consumer; returns for how long it has to rest.

        If that is any time, the answer is not given and does not count.
        """
        self._is_settled = True
        now_ms = self._clock.monotonic_ms()
        fetch = self._quotas.fetch
        request_ms = self._use_time(now_ms)
        fetch_ms = self._use(fetch, size, now_ms)
        throttle_ms = self._rest([(fetch_ms, fetch), (request_ms, self._quotas.request)])
        metered = fetch.of(self._user, self._client_id)
        if throttle_ms and metered is not None:
            metered.meter.record(-size, now_ms)
        return throttle_ms

    @property
    def counts_fetched(self) -> bool:
        """True if the client has a fetch quota."""
        return self._quotas.fetch.of(self._user, self._client_id) is not None

    @property
    def most_fetched(self) -> int | None:
        """Largest fetch that the quota can ever allow, in bytes; None if there is no quota."""
        metered: Metered[SampledRate] | None = self._quotas.fetch.of(self._user, self._client_id)
        if metered is None:
            return None
        windows, window_ms = self._quotas.span
        return int(metered.limit * (windows - 1) * window_ms / 1000)

    def _use(self, meters: Meters[SampledRate], amount: float, now_ms: int) -> int:
        """Count an amount; returns how long to rest for it."""
        metered = meters.of(self._user, self._client_id) if amount else None
        if metered is None:
            return 0
        metered.meter.record(amount, now_ms)
        return metered.meter.throttle_ms(metered.limit, now_ms)

    def _use_time(self, now_ms: int) -> int:
        """Count the time that the request took; one window is the longest that it makes rest."""
        took_ns = self._busy_ns + time.perf_counter_ns() - self._began_ns
        throttle_ms = self._use(self._quotas.request, took_ns * PERCENT_PER_NS, now_ms)
        return min(throttle_ms, self._quotas.span.window_ms)

    def _rest(self, throttles: list[tuple[int, Meters[SampledRate] | Meters[TokenBucket]]]) -> int:
        throttle_ms, meters = max(throttles, key=lambda throttle: throttle[0])
        if throttle_ms:
            meters.note_throttle(throttle_ms)
            self._connection.rest(throttle_ms)
        return throttle_ms
