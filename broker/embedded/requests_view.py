"""What clients have sent, as a test looks at it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from broker.embedded.errors import NotReachedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.embedded.engines.engine import Engine
    from broker.embedded.faults.sent_requests import SentRequest
    from protocol.schema import Request

R = TypeVar("R", bound="Request")

POLL_SECONDS = 0.005


class Requests:
    """The newest of clients, `embedded.requests.kept` of them, oldest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def of(self, request: type[R], *, client_id: str | None = None) -> list[R]:
        """Those of one kind, as they were decoded."""
        return [
            one.message
            for one in self
            if isinstance(one.message, request) and client_id in (None, one.client_id)
        ]

    def wait_for(self, request: type[R], count: int = 1, timeout: float = 10.0) -> list[R]:
        """Those of one kind, once there are so many. Raises NotReachedError."""
        until = time.monotonic() + timeout
        while len(found := self.of(request)) < count:
            if time.monotonic() > until:
                name = request.__name__
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
