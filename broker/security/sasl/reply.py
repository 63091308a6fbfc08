"""Reaction of a connection to a frame that came during authentication."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from protocol.headers import response_front_packer, response_header_bytes

if TYPE_CHECKING:
    from broker.security.sasl.mechanism import Mechanism
    from protocol.headers import RequestHeader
    from protocol.schema import Part, Response

SIZE_BYTES = 4


class Verdict(Enum):
    """Action on the connection."""

    GO_ON = auto()
    ADMIT = auto()
    """Its client is authenticated."""
    REFUSE = auto()
    """The connection ends with the answer, after `connection.failed.authentication.delay.ms`."""
    HANG_UP = auto()
    """The connection ends at once, without an answer."""


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """An authenticated client."""

    principal: str
    mechanism: Mechanism
    expires_at_ms: int | None = None
    """Monotonic time by which it has to authenticate again; None for never."""


@dataclass(frozen=True, slots=True, repr=False)
class Reply:
    """The answer to a frame, and the verdict."""

    verdict: Verdict
    answer: list[Part] | None = None
    """Ready to be sent, with its size."""
    reason: str = ""
    """Reason why the connection ends, for the log."""
    session: Session | None = None
    """Of a client that is admitted."""


def refuse(reason: str, answer: list[Part] | None = None) -> Reply:
    """End the connection, after a while."""
    return Reply(Verdict.REFUSE, answer, reason)


def hang_up(reason: str) -> Reply:
    """End the connection."""
    return Reply(Verdict.HANG_UP, None, reason)


def framed(header: RequestHeader, response: Response) -> list[Part]:
    """The bytes of a response: size, header, body."""
    body = response.encode(header.api_version)
    size = response_header_bytes(header.api_key, header.api_version) + len(body)
    pack_front = response_front_packer(header.api_key, header.api_version)
    return [pack_front(size, header.correlation_id) + body]


def bare(token: bytes) -> list[Part]:
    """The bytes of a token without any header."""
    return [len(token).to_bytes(SIZE_BYTES, "big") + token]
