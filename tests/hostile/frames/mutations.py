"""Damage to the bytes of a request, its length prefix left out or made anew."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.frames.draw import Draw

    Mutation = Callable[[Draw, bytearray], bytes | bytearray]

FIXED_BYTES: Final = 8
"""API key, version and correlation id; the client id and perhaps tags follow."""
SPARED_PROBABILITY: Final = 0.93
"""Probability that a mutation spares the header: behind a broken one nothing is read."""

NUMBERS: Final = (
    *(b"\x7f", b"\x80", b"\xff", b"\0", b"\x7f\xff", b"\x80\0", b"\xff\xff", b"\0\0"),
    *(b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\1\0\0"),
    *(b"\x05\xf5\xe1\0", b"\0\x0f\x42\x40", b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7),
    *(b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x01", b"\x81\x80\x04", b"\xff\xff\x03"),
)
GREETINGS: Final = (
    *(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"),
    *(b"SSH-2.0-OpenSSH_9.6\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\0\0", b"\r\n\r\n"),
    *(b"\xff" * 64, b"\0" * 64, b"\x7f\xff\xff\xff", b"\x80\0\0\0"),
)
WRONG_BY: Final = (-100, -10, -4, -1, 1, 4, 100, 1_000_000)
NOISE_BYTES: Final = (1, 7, 20, 100, 1000, 1000, 50_000)
API_KEYS: Final = (-1, 0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 18, 19, 52, 59, 62, 71, 92, 93, 1000, 32767)
VERSIONS: Final = (-1, 0, 1, 2, 3, 4, 9, 12, 16, 99, 32767, -32768)


def _flip_bits(draw: Draw, content: bytearray) -> bytearray:
    for _ in range(1 + draw.below(4)):
        content[draw.below(len(content))] ^= 1 << draw.below(8)
    return content


def _write_number(draw: Draw, content: bytearray) -> bytearray:
    number = draw.pick(NUMBERS)
    position = draw.below(len(content))
    content[position : position + len(number)] = number
    return content


def _cut(draw: Draw, content: bytearray) -> bytearray:
    del content[draw.below(len(content)) :]
    return content


def _extend(draw: Draw, content: bytearray) -> bytearray:
    return content + draw.chance.randbytes(draw.pick((1, 1, 4, 50, 5000)))


def _insert(draw: Draw, content: bytearray) -> bytearray:
    position = draw.below(len(content))
    content[position:position] = draw.chance.randbytes(1 + draw.below(8))
    return content


def _remove(draw: Draw, content: bytearray) -> bytearray:
    position = draw.below(len(content))
    del content[position : position + 1 + draw.below(8)]
    return content


def _repeat(draw: Draw, content: bytearray) -> bytearray:
    position = draw.below(len(content))
    piece = bytes(content[position : position + 4 + draw.below(60)])
    content[position:position] = piece * (1 + draw.below(40))
    return content


def _add_tags(draw: Draw, content: bytearray) -> bytearray:
    """Tagged fields that nobody knows; the last byte of a flexible request says how many."""
    count = 1 + draw.below(100)
    tags = b"".join(bytes((draw.below(128), 2)) + b"??" for _ in range(count))
    content[-1:] = bytes((count,)) + tags
    return content


def _change_header(draw: Draw, content: bytearray) -> bytearray:
    if draw.happens(0.5):
        struct.pack_into(">h", content, 0, draw.pick(API_KEYS))
    if draw.happens(0.6):
        struct.pack_into(">h", content, 2, draw.pick(VERSIONS))
    if draw.happens(0.3):
        struct.pack_into(">h", content, FIXED_BYTES, draw.pick((-1, -2, 0, 3, 32767, -32768)))
    return content


def _noise(draw: Draw, _content: bytearray) -> bytes:
    return draw.chance.randbytes(draw.pick(NOISE_BYTES))


WITHIN: Final[tuple[tuple[str, Mutation], ...]] = (
    ("flipped bits", _flip_bits),
    ("flipped bits", _flip_bits),
    ("flipped bits", _flip_bits),
    ("a number written over", _write_number),
    ("a number written over", _write_number),
    ("a number written over", _write_number),
    ("cut", _cut),
    ("extended", _extend),
    ("bytes inserted", _insert),
    ("bytes removed", _remove),
    ("a piece repeated", _repeat),
    ("unknown tags", _add_tags),
    ("noise", _noise),
)
"""Mutations after which the length prefix is right."""

WRONG_SIZE_PROBABILITY: Final = 0.04
GREETING_PROBABILITY: Final = 0.01
HEADER_PROBABILITY: Final = 0.04


def mutate(draw: Draw, header: bytes, body: bytes) -> tuple[str, bytes]:
    """Damage a request; returns how, and its bytes with a length prefix, if only a wrong one."""
    kind = draw.random()
    if kind < GREETING_PROBABILITY:
        return "another protocol", draw.pick(GREETINGS)
    content = header + body
    if kind < GREETING_PROBABILITY + WRONG_SIZE_PROBABILITY:
        size = max(0, len(content) + draw.pick(WRONG_BY))
        return "a wrong size", struct.pack(">i", size) + content
    if kind < GREETING_PROBABILITY + WRONG_SIZE_PROBABILITY + HEADER_PROBABILITY:
        return "another header", _framed(_change_header(draw, bytearray(content)))
    name, mutation = draw.pick(WITHIN)
    if body and draw.happens(SPARED_PROBABILITY):
        return name, _framed(header + mutation(draw, bytearray(body)))
    return name, _framed(mutation(draw, bytearray(content)))


def _framed(content: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(content)) + content
