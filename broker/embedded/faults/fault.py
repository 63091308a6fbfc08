"""What shall happen to requests, and to which of them."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from protocol.schema import Request


class Mischief(Enum):
    """What becomes of a request."""

    FAIL = "fail"
    """It is answered with an error, and not handled."""
    DELAY = "delay"
    """It is handled later; so are those behind it on its connection."""
    DISCONNECT = "disconnect"
    """Its connection is closed, and it is not handled."""
    DROP_ANSWER = "drop answer"
    """It is handled, and its connection closed in the place of an answer."""
    WITHHOLD_ANSWER = "withhold answer"
    """It is handled and never answered; its connection stays open."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One rule. It can be sent to another process."""

    mischief: Mischief
    request: type[Request] | None
    """None: any."""
    error: ErrorCode = ErrorCode.NONE
    """Of FAIL."""
    seconds: float = 0.0
    """Of DELAY."""
    times: int | None = None
    """How many requests it strikes; None: all, until it is removed."""
    topic: str | None = None
    """Strikes only requests that name this topic; None: any."""
    client_id: str | None = None
    """Strikes only requests of this client; None: of any."""

    def concerns(
        self, request: type[Request], client_id: str | None, topics: Collection[str]
    ) -> bool:
        """Whether it strikes such a request."""
        return (
            self.request in (None, request)
            and self.client_id in (None, client_id)
            and (self.topic is None or self.topic in topics)
        )
