"""Requests that clients have sent to an embedded broker, for assertions."""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from protocol.fields import Kind

if TYPE_CHECKING:
    from broker.requests.context import Context
    from protocol.schema import Request, Struct

R = TypeVar("R", bound="Request")


@dataclasses.dataclass(frozen=True, slots=True)
class SentRequest:
    """One request and its sender."""

    message: Request
    version: int
    client_id: str | None
    principal: str
    received_ms: int
    """By the broker's wall clock."""
    record_bytes: int = 0


class SentRequests:
    """The newest requests, once it is bounded; noted on the event loop, read by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: deque[SentRequest] = deque()
        self._record_bytes = 0
        self._most_requests = self._most_record_bytes = 0
        self._with_records: dict[type, bool] = {}

    def bound(self, requests: int, record_bytes: int) -> None:
        """Keep only the newest, within these limits of requests and of bytes of records in them."""
        with self._lock:
            self._most_requests, self._most_record_bytes = requests, record_bytes
            self._forget_oldest()

    def note(self, context: Context, request: Request) -> None:
        """Keep a request."""
        size = 0
        cls = type(request)
        has_records = self._with_records.get(cls)
        if has_records is None:
            has_records = self._with_records[cls] = _has_records(cls)
        if has_records:  # they lie in the connection's buffer, which will be used again
            request, size = _detached(request)
        noted = SentRequest(
            request,
            context.api_version,
            context.client_id,
            context.principal,
            context.now_ms,
            size,
        )
        with self._lock:
            self._requests.append(noted)
            self._record_bytes += size
            self._forget_oldest()

    def all(self) -> list[SentRequest]:
        """Requests kept, oldest first."""
        with self._lock:
            return list(self._requests)

    def clear(self) -> None:
        """Forget them."""
        with self._lock:
            self._requests.clear()
            self._record_bytes = 0

    def _forget_oldest(self) -> None:
        kept = self._requests
        while len(kept) > self._most_requests or self._record_bytes > self._most_record_bytes:
            self._record_bytes -= kept.popleft().record_bytes


def _has_records(struct: type[Struct]) -> bool:
    return any(
        field.kind is Kind.RECORDS
        or (
            field.element is not None
            and field.element.struct is not None
            and _has_records(field.element.struct)
        )
        for field in struct.FIELDS
    )


def _detached(message: R) -> tuple[R, int]:
    """A copy that holds its records itself, and how many bytes they have."""
    size = 0
    values: dict[str, Any] = {}
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.kind is Kind.RECORDS and value is not None:
            value = bytes(value)
            size += len(value)
        elif field.kind is Kind.ARRAY and field.element is not None and field.element.struct:
            copies = [_detached(element) for element in value or ()]
            value = [copy for copy, _ in copies]
            size += sum(count for _, count in copies)
        values[field.name] = value
    return type(message)(**values), size
