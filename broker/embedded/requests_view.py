"""A test's view of the requests that clients have sent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar, overload

from broker.embedded.errors import NotReachedError
from broker.embedded.names import request_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.embedded.engines.engine import Engine
    from broker.embedded.faults.sent_requests import SentRequest
    from protocol.schema import Request

R = TypeVar("R", bound="Request")

POLL_SECONDS = 0.005


class Requests:
    """The newest of clients, `embedded.requests.kept` of them, oldest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @overload
    def of(self, request: type[R], *, client_id: str | None = None) -> list[R]: ...

    @overload
    def of(self, request: str, *, client_id: str | None = None) -> list[Any]: ...

    def of(self, request: type[Request] | str, *, client_id: str | None = None) -> list[Any]:
        """Decoded requests of one kind, by class or name."""
        return requests_of(self, request, client_id)

    @overload
    def wait_for(self, request: type[R], count: int = 1, timeout: float = 10.0) -> list[R]: ...

    @overload
    def wait_for(self, request: str, count: int = 1, timeout: float = 10.0) -> list[Any]: ...

    def wait_for(
        self, request: type[Request] | str, count: int = 1, timeout: float = 10.0
    ) -> list[Any]:
        """Requests of one kind, once there are `count`. Raises NotReachedError."""
        until = time.monotonic() + timeout
        while len(found := self.of(request)) < count:
            if time.monotonic() > until:
                name = request if isinstance(request, str) else request.__name__
                text = f"{len(found)} of {count} {name}s came in {timeout:g} s"
                raise NotReachedError(text)
            time.sleep(POLL_SECONDS)
        return found

    def clear(self) -> None:
        """Forget them."""
        self._engine.ask("forget_requests")

    def __iter__(self) -> Iterator[SentRequest]:
        """All, with version and client."""
        yield from self._engine.ask("sent_requests")

    def __len__(self) -> int:
        return len(self._engine.ask("sent_requests"))


def requests_of(
    sent: Iterable[SentRequest], request: type[Request] | str, client_id: str | None
) -> list[Any]:
    """The messages of one kind, by class or name, and of one client if one is named."""
    kind = request_named(request)
    return [
        one.message
        for one in sent
        if (kind is None or isinstance(one.message, kind)) and client_id in (None, one.client_id)
    ]
