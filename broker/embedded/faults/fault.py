"""Faults of requests, and the requests they strike."""

from __future__ import annotations

import dataclasses
import math
from enum import Enum
from typing import TYPE_CHECKING

from broker.embedded.faults.request_topics import names_topics
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from protocol.schema import Request


class Mischief(Enum):
    """Effect on a request."""

    FAIL = "fail"
    """The request is answered with an error, and not handled."""
    DELAY = "delay"
    """The request is handled later; so are those behind it on its connection."""
    DISCONNECT = "disconnect"
    """Its connection is closed, and it is not handled."""
    DROP_ANSWER = "drop answer"
    """The request is handled, and its connection closed instead of an answer."""
    WITHHOLD_ANSWER = "withhold answer"
    """The request is handled and never answered; its connection stays open."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One rule. It can be sent to another process.

    What could never strike, or not be answered, is refused at once: TypeError or ValueError.
    """

    mischief: Mischief
    request: type[Request] | None
    """None: any."""
    error: ErrorCode = ErrorCode.NONE
    """Of FAIL."""
    seconds: float = 0.0
    """Of DELAY."""
    times: int | None = None
    """Number of requests it strikes; None: all, until it is removed."""
    topic: str | None = None
    """Strikes only requests that name this topic; None: any."""
    client_id: str | None = None
    """Strikes only requests of this client; None: of any."""

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)
        _check_times(self.times)
        for name, text in (("topic", self.topic), ("client_id", self.client_id)):
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{name} is a string or None, not {text!r}")
        if self.topic is not None and self.request is not None and not names_topics(self.request):
            raise ValueError(f"topic: {self.request.__name__} names no topics")
        if self.mischief is Mischief.FAIL and self.error is ErrorCode.NONE:
            raise ValueError("error: NONE is no error to answer with")

    def concerns(
        self, request: type[Request], client_id: str | None, topics: Collection[str]
    ) -> bool:
        """Return whether it strikes such a request."""
        return (
            self.request in (None, request)
            and self.client_id in (None, client_id)
            and (self.topic is None or self.topic in topics)
        )


def _check_seconds(seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"seconds is a number, not {seconds!r}")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"seconds is not negative and not endless, unlike {seconds!r}")


def _check_times(times: object) -> None:
    if times is None:
        return
    if isinstance(times, bool) or not isinstance(times, int):
        raise TypeError(f"times is a whole number or None, not {times!r}")
    if times < 1:
        raise ValueError(f"times is at least 1, or None for all, and not {times}")
