"""The faults that are set, and how often each has struck. Any thread may set them."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.embedded.faults.fault import Fault
    from protocol.schema import Request


@dataclasses.dataclass(slots=True)
class _Set:
    fault: Fault
    count: int = 0
    is_removed: bool = False

    @property
    def is_due(self) -> bool:
        times = self.fault.times
        return not self.is_removed and (times is None or self.count < times)


class ActiveFaults:
    """Of one broker; they outlive its restarts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._faults: dict[int, _Set] = {}
        self._due: list[_Set] = []
        """Looked at with each request, so only what can still strike."""

    def add(self, fault: Fault) -> int:
        """Set a fault; returns its number."""
        with self._lock:
            number = next(self._numbers)
            self._faults[number] = added = _Set(fault)
            self._due.append(added)
            return number

    def remove(self, number: int) -> None:
        """Remove a fault: it strikes no more requests; its count remains."""
        with self._lock:
            found = self._faults.get(number)
            if found is not None:  # unless it was set in a process that has ended
                found.is_removed = True
                self._due = [one for one in self._due if one is not found]

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            for one in self._due:
                one.is_removed = True
            self._due = []

    def count(self, number: int) -> int:
        """Number of requests it has struck."""
        found = self._faults.get(number)
        return 0 if found is None else found.count

    def strike(
        self,
        request: type[Request],
        client_id: str | None,
        topics: Callable[[], Collection[str]],
    ) -> Fault | None:
        """The fault that strikes a request, which is counted; the one set first of several."""
        if not self._due:
            return None
        with self._lock:
            for one in self._due:
                named = () if one.fault.topic is None else topics()
                if one.fault.concerns(request, client_id, named):
                    one.count += 1
                    if not one.is_due:
                        self._due = [other for other in self._due if other is not one]
                    return one.fault
        return None
