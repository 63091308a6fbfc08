"""One hostile frame, by its seed and number.

What a frame is:

    a request of some API and version           from its declaration, plausibly filled in (`values`)
    with something outrageous in it, often      `requests.twist`, `requests.deepen`
    encoded, and damaged, often                 `mutations`
    unless it would be a lawful command to harm others, which it is told as (`lawful_harm`)
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

from protocol.api_keys import ApiKey
from protocol.headers import request_front
from protocol.wire import encode_uvarint
from tests.hostile.frames import names
from tests.hostile.frames.draw import Draw
from tests.hostile.frames.lawful_harm import harm_of
from tests.hostile.frames.mutations import mutate
from tests.hostile.frames.requests import build, declared, deepen, served, spliced, twist

if TYPE_CHECKING:
    from protocol.schema import Request
    from tests.hostile.frames.names import Identifiers

SIZE_BYTES: Final = 4
HEADER_BYTES: Final = SIZE_BYTES + 8
TWISTED_PROBABILITY: Final = 0.45
DEEP_PROBABILITY: Final = 0.03
DAMAGED_PROBABILITY: Final = 0.4
LARGEST_BYTES: Final = 2_000_000
ODD_CLIENT_PROBABILITY: Final = 0.04
UNSERVED_PROBABILITY: Final = 0.04
"""Probability that a request, or its version, is drawn from all declared ones, not from those
served."""

_HEADER = struct.Struct(">ihhi")


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes to send, and what is known of their answer."""

    number: int
    data: bytes
    """With the length in front, which may be wrong."""

    name: str
    """Request, version and damage, for people."""

    subject: str = ""
    """The group or transactional id that it is about, to know what an answer is about."""

    is_damaged: bool = False
    may_be_silent: bool = False
    """A Produce request that may be one without acknowledgement."""

    harm: str = ""
    """Reason why it is not sent: it commands what the broker has to obey."""

    @property
    def is_whole(self) -> bool:
        """Return whether the length prefix is right, and a header may follow."""
        size = len(self.data) - SIZE_BYTES
        return len(self.data) >= HEADER_BYTES and _HEADER.unpack_from(self.data)[0] == size

    @property
    def api_key(self) -> int:
        """As the broker reads it; only if it is whole."""
        return int(_HEADER.unpack_from(self.data)[1])

    @property
    def version(self) -> int:
        """As the broker reads it; only if it is whole."""
        return int(_HEADER.unpack_from(self.data)[2])

    @property
    def correlation_id(self) -> int:
        """As the broker reads it; only if it is whole."""
        return int(_HEADER.unpack_from(self.data)[3])


def make_frame(seed: int, number: int, known: Identifiers, *, is_sound: bool = False) -> Frame:
    """The frame of that number, with `known` filled in where the broker chose an identifier.

    It is damaged or not, as chance wants it, unless it has to be sound.
    """
    draw = Draw(Random(f"{seed}/{number}"), known)
    request, version = draw.pick(
        declared() if draw.happens(UNSERVED_PROBABILITY) else draw.pick(served())
    )
    built = build(request, version, draw)
    text = b""
    if draw.happens(TWISTED_PROBABILITY):
        text = twist(built, version, draw)
    elif draw.happens(DEEP_PROBABILITY):
        deepen(built, version)
    header, body = _encode(built, version, number, draw)
    if text:
        body = spliced(body, text, is_flexible=version in request.FLEXIBLE)
    name = f"{request.__name__} v{version}"
    is_damaged = draw.happens(DAMAGED_PROBABILITY) and not is_sound
    if is_damaged:
        how, data = mutate(draw, header, body)
        name = f"{name}, {how}"
    else:
        data = struct.pack(">i", len(header) + len(body)) + header + body
    return Frame(
        number,
        data,
        name,
        _subject(built),
        is_damaged=is_damaged,
        may_be_silent=is_damaged or request.API_KEY is ApiKey.PRODUCE,
        harm=harm_of(data[SIZE_BYTES:]),
    )


def _encode(built: Request, version: int, number: int, draw: Draw) -> tuple[bytes, bytes]:
    """The header and the body; with default contents if it would be too long."""
    client = draw.pick(names.CLIENT_IDS) if draw.happens(ODD_CLIENT_PROBABILITY) else "fuzz"
    body = built.encode(version)
    if len(body) > LARGEST_BYTES:
        body = type(built)().encode(version)
    return _header(built, version, number, client), body


def _header(built: Request, version: int, number: int, client: str | None) -> bytes:
    key = int(built.API_KEY)
    if client is None:
        tags = encode_uvarint(0) if version in built.FLEXIBLE else b""
        return struct.pack(">hhih", key, version, number, -1) + tags
    return request_front(number, key, version, client.encode(), 0)[SIZE_BYTES:]


def _subject(built: Any) -> str:
    for name in ("group_id", "transactional_id"):
        subject = getattr(built, name, None)
        if isinstance(subject, str):
            return subject
    return ""
