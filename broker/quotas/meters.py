"""Usage of one kind of quota by clients, against their limits.

Client ids are chosen by strangers, so the number of meters is bounded; the least recently used one
is forgotten first, and its client starts over. A long client id is kept as its digest.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from broker.quotas.limits import Limits, Share

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.security.config_entities import ConfigEntity

M = TypeVar("M")

LONGEST_KEPT: Final = 250
"""Characters of a client id that is kept as it is; one may have 32 KB."""


class Metered(NamedTuple, Generic[M]):
    """Usage of a client, with those it shares its limit with, and that limit."""

    meter: M
    limit: float


class Meters(Generic[M]):
    """One kind of quota: a `SampledRate` or a `TokenBucket` for each share."""

    def __init__(self, make: Callable[[], M], most: int) -> None:
        """`make` makes a meter on which nothing was counted yet; `most` of them are kept."""
        self._make = make
        self._most = most
        self._limits = Limits()
        self._meters: OrderedDict[Share, M] = OrderedDict()
        self.is_enabled = False
        """True if any limit is set."""
        self.throttle_count = 0
        """Number of times a client was throttled."""
        self.throttle_ms = 0
        """Total throttle time."""

    def __len__(self) -> int:
        return len(self._meters)

    def set(self, entity: ConfigEntity, limit: float | None) -> bool:
        """Set a limit, or remove it with None; returns whether that changes anything."""
        is_changed = self._limits.set(entity, limit)
        self.is_enabled = bool(self._limits)
        if not self.is_enabled:
            self._meters.clear()
        return is_changed

    def of(self, user: str, client_id: str) -> Metered[M] | None:
        """Usage and limit of a client; None if it has no limit."""
        if not self.is_enabled:
            return None
        share = self._limits.share_of(user, client_id)
        limit = self._limits.limit_of(share)
        if limit is None:
            return None
        if len(share.client_id) > LONGEST_KEPT:
            share = Share(share.user, sha256(share.client_id.encode()).hexdigest())
        meter = self._meters.get(share)
        if meter is None:
            meter = self._meters[share] = self._make()
            if len(self._meters) > self._most:
                self._meters.popitem(last=False)
        else:
            self._meters.move_to_end(share)
        return Metered(meter, limit)

    def note_throttle(self, milliseconds: int) -> None:
        """A client has to rest because of it."""
        self.throttle_count += 1
        self.throttle_ms += milliseconds
