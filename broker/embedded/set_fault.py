"""A fault as the test holds it that has set it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from broker.embedded.errors import NotReachedError

if TYPE_CHECKING:
    from broker.embedded.engines.engine import Engine
    from broker.embedded.faults.fault import Fault

POLL_SECONDS = 0.005


class SetFault:
    """Strikes until it is removed, or has struck often enough. As a context, until its end."""

    def __init__(self, engine: Engine, fault: Fault) -> None:
        self._engine = engine
        self._number: int = engine.ask("add_fault", fault)
        self._is_removed = False

    @property
    def count(self) -> int:
        """Number of requests it has struck."""
        count: int = self._engine.ask("fault_count", self._number)
        return count

    def wait(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until it has struck `count` requests. Raises NotReachedError."""
        until = time.monotonic() + timeout
        while (now := self.count) < count:
            if time.monotonic() > until:
                raise NotReachedError(f"{now} of {count} requests were struck in {timeout:g} s")
            time.sleep(POLL_SECONDS)

    def remove(self) -> None:
        """Remove it: it strikes no more requests."""
        if not self._is_removed:
            self._is_removed = True
            self._engine.ask("remove_fault", self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
