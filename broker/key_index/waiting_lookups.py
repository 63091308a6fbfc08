"""Waiting records in the partitions that this broker leads, for operators: listed, and cancelled.

    GET  /waiting?topic=…[&partition=…][&id=…][&limit=…][&start=…]
    POST /waiting/cancel?topic=…&partition=…&offset=…

Only `key.index.user` may cancel: access to the port need not include the right to produce.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.delivery.waiting_list import FIRST, PageLimits, WaitingList, size_of
from broker.delivery.waiting_queue import Waiting
from broker.key_index.request import (
    BadRequestError,
    content_of,
    limit_of,
    number_of,
    parameters_of,
)
from broker.key_index.topic_access import (
    FORBIDDEN,
    RefusedError,
    TopicAccess,
    require_access,
    require_whole,
)
from protocol.acl_types import AclOperation
from storage.key_index.lookup import as_json, shown_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.delivery.deliveries import Deliveries
    from broker.delivery.partition_delivery import PartitionDelivery
    from broker.delivery.waiting_list import ListedRecord, WaitingPage
    from broker.key_index.endpoint import Encode
    from broker.requests.services import BrokerServices

LISTED: Final = ("topic", "partition", "id", "id.base64", "limit", "start")
CANCELLED: Final = ("topic", "partition", "offset")
MOST_OFFSET: Final = 1 << 63
_START = re.compile("([0-9]{1,9}):(-?[0-9]{1,19}):(-?[0-9]{1,19})", re.ASCII)
"""As many digits as an int64 has: `delivery.delay.max.ms` allows delays of 2^62 ms."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A request for waiting records."""

    topic: str
    partition: int | None
    message_id: bytes | None
    limit: int
    start: tuple[int, Waiting] = (0, FIRST)
    """Partition, and where in it: the `next` of an earlier answer."""


class WaitingLookups:
    """On the event loop; what takes long is done in slices."""

    def __init__(self, services: BrokerServices, deliveries: Deliveries) -> None:
        self._services = services
        self._deliveries = deliveries

    async def listed(self, query: str, address: str) -> Encode:
        """Waiting records, as JSON. Raises BadRequestError and RefusedError."""
        request = read_list_request(query)
        require_access(self._services, TopicAccess("WaitingLookup", address, request.topic))
        config, clock = self._services.config, self._services.clock
        deadline_ms = clock.monotonic_ms() + config.key_index_lookup_timeout_ms

        def is_late() -> bool:
            return clock.monotonic_ms() >= deadline_ms

        answer = _Answer(
            min(request.limit, config.key_index_lookup_max_records),
            config.key_index_lookup_max_bytes,
        )
        mine, elsewhere = self._partitions(request)
        for number, delivery in mine:
            require_whole(delivery.partition)
            waiting = WaitingList(delivery, self._services.slices(), is_late)
            place: Waiting | None = request.start[1] if number == request.start[0] else FIRST
            while place is not None and answer.next is None:
                wanted = request.message_id
                page = await (
                    waiting.page(place, answer.left)
                    if wanted is None
                    else waiting.search(place, answer.left, wanted)
                )
                answer.take(number, page)
                place = page.next
                if answer.is_full or is_late():
                    answer.stop(number, place)
        waits = sum(len(one) for _, one in mine)
        return partial(answer.encoded, request.topic, elsewhere, waits)

    async def cancelled(self, query: str, address: str) -> Encode:
        """Cancel a record that waits. Raises BadRequestError and RefusedError."""
        given = parameters_of(query, CANCELLED)
        topic = given["topic"]
        partition = number_of(given, "partition", None)
        offset = number_of(given, "offset", None, MOST_OFFSET)
        if partition is None or offset is None:
            raise BadRequestError("partition or offset is missing")
        if self._services.config.key_index_user is None:
            raise RefusedError(FORBIDDEN, "cancelling takes key.index.user, with a password")
        access = TopicAccess("WaitingCancellation", address, topic, AclOperation.WRITE)
        require_access(self._services, access)
        mine, elsewhere = self._partitions(ListRequest(topic, partition, None, 1))
        if elsewhere:
            text = f"{topic}-{partition} is led by broker {elsewhere[0][1]}"
            raise RefusedError("421 Misdirected Request", text)
        if not mine:
            raise RefusedError("409 Conflict", f"nothing waits in {topic}-{partition}")
        waiting = WaitingList(mine[0][1], self._services.slices())
        try:
            async with asyncio.timeout(self._services.config.key_index_lookup_timeout_ms / 1000):
                await waiting.cancel(offset)
        except TimeoutError:
            text = f"whether {topic}-{partition} at {offset} is cancelled is not known yet"
            raise RefusedError("504 Gateway Timeout", text) from None
        return partial(as_json, {"topic": topic, "partition": partition, "offset": offset})

    def _partitions(
        self, request: ListRequest
    ) -> tuple[list[tuple[int, PartitionDelivery]], list[tuple[int, int]]]:
        """Partitions that may have waiting records here, and those led by others."""
        services = self._services
        topic = services.metadata.topic(request.topic)
        if topic is None:
            raise RefusedError("404 Not Found", f"there is no topic {request.topic:.250}")
        numbers = sorted(topic.partitions) if request.partition is None else [request.partition]
        found, elsewhere = [], []
        for number in numbers:
            if number not in topic.partitions:
                text = f"there is no partition {request.topic}-{number}"
                raise RefusedError("404 Not Found", text)
            partition = services.replicas.partition(request.topic, number)
            if partition is None or not partition.is_leader:
                elsewhere.append((number, topic.partitions[number].leader))
                continue
            delivery = self._deliveries.of(partition)
            if delivery is not None and number >= request.start[0]:
                found.append((number, delivery))
        return found, elsewhere


class _Answer:
    """Records, until there are enough of them."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.left = PageLimits(most, most_bytes)
        self.next: str | None = None
        self._records: list[tuple[int, ListedRecord]] = []

    @property
    def is_full(self) -> bool:
        """True if nothing more may be added."""
        return self.left.records <= 0 or self.left.bytes <= 0

    def take(self, number: int, page: WaitingPage) -> None:
        """Add a page of a partition."""
        self._records += [(number, one) for one in page.records]
        size = sum(size_of(one.record) for one in page.records)
        self.left = PageLimits(self.left.records - len(page.records), self.left.bytes - size)

    def stop(self, number: int, place: Waiting | None) -> None:
        """Have the next answer go on at a place of a partition, or with the next partition."""
        number, place = (number + 1, FIRST) if place is None else (number, place)
        self.next = f"{number}:{place.due_ms}:{place.offset}"

    def encoded(self, topic: str, elsewhere: Sequence[tuple[int, int]], waiting: int) -> bytes:
        """The answer, as JSON; for any thread, as megabytes take long."""
        lines = [
            as_json({"due": due_ms, **shown_record(number, record)})
            for number, (due_ms, record) in self._records
        ]
        rest = {"topic": topic, "waiting": waiting, "next": self.next, "led_elsewhere": elsewhere}
        return b'{"records":[' + b",".join(lines) + b"]," + as_json(rest)[1:] + b"\n"


def read_list_request(query: str) -> ListRequest:
    """The request in a query. Raises BadRequestError."""
    given = parameters_of(query, LISTED)
    return ListRequest(
        given["topic"],
        number_of(given, "partition", None),
        content_of(given, "id"),
        limit_of(given),
        _start(given.get("start", "0:-1:-1")),
    )


def _start(text: str) -> tuple[int, Waiting]:
    match = _START.fullmatch(text)
    if match is None:
        raise BadRequestError(f"start={text:.100} is no PARTITION:DUE:OFFSET")
    partition, due_ms, offset = map(int, match.groups())
    return partition, Waiting(due_ms, offset)
