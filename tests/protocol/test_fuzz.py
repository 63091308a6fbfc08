"""Hostile input to every decoder: only DecodeError comes out, at a cost that the input bounds.

Frames are cut, filled with noise, and damaged where a length may be, with values that ask for too
much. A message that still decodes must survive being encoded again.
"""

from __future__ import annotations

import contextlib
import random
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.headers import parse_request_header
from protocol.wire import DecodeError
from tests.protocol.strategies import every_version, filled_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Message

Pair = tuple[type["Message"], int]

GREEDY = [
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80\x80",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff",
    b"\x7f\xff",
    b"\x00",
    b"\x7f",
    b"\xff",
]
"""Lengths and counts that promise more than there is, or less than nothing."""

BYTES_PER_BYTE = 250
"""Memory that one byte of a frame may cost: an empty struct in a list, and its empty lists."""

BASE_BYTES = 50_000

pairs = st.sampled_from(every_version())


def decode_or_refuse(message: type[Message], version: int, frame: bytes) -> None:
    with contextlib.suppress(DecodeError):
        read = message.decode(version, memoryview(frame))
        again = read.encode(version)
        assert message.decode(version, again).encode(version) == again


@settings(max_examples=1500, deadline=None)
@given(pair=pairs, noise=st.binary(max_size=300))
def test_noise_is_refused_or_read(pair: Pair, noise: bytes) -> None:
    decode_or_refuse(*pair, noise)


@settings(max_examples=1500, deadline=None)
@given(
    pair=pairs,
    places=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4),
    damage=st.sampled_from(GREEDY) | st.binary(min_size=1, max_size=6),
)
def test_damaged_messages_are_refused_or_read(
    pair: Pair, places: list[float], damage: bytes
) -> None:
    frame = bytearray(filled_bytes(*pair))
    for place in places if frame else ():
        position = int(place * len(frame))
        frame[position : position + len(damage)] = damage
    decode_or_refuse(*pair, bytes(frame))


@settings(max_examples=500)
@given(noise=st.binary(max_size=60), key=st.integers(-2, 100), version=st.integers(-1, 20))
def test_noise_for_headers_is_refused_or_read(noise: bytes, key: int, version: int) -> None:
    for frame in (noise, key.to_bytes(2, "big", signed=True) + bytes([0, version & 31]) + noise):
        with contextlib.suppress(DecodeError):
            header, position = parse_request_header(memoryview(frame))
            assert position <= len(frame)
            assert header.client_id is None or isinstance(header.client_id, str)


def test_every_cut_is_refused() -> None:
    for message, version in every_version():
        frame = memoryview(filled_bytes(message, version))
        step = max(1, len(frame) // 25)
        for size in {*range(0, len(frame), step), len(frame) - 1} if frame else ():
            with pytest.raises(DecodeError):
                message.decode(version, frame[:size])


def test_greedy_lengths_cost_no_more_than_the_frame_allows() -> None:
    with traced():
        for message, version, frame in damaged_frames():
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with contextlib.suppress(DecodeError):
                message.decode(version, memoryview(frame))
            _, peak = tracemalloc.get_traced_memory()
            cost = peak - before
            assert cost < BYTES_PER_BYTE * len(frame) + BASE_BYTES, (message, version, frame)


def damaged_frames() -> Iterator[tuple[type[Message], int, bytes]]:
    """Every (message, version) with each greedy value at a few places."""
    places = random.Random(3)
    for message, version in every_version():
        frame = filled_bytes(message, version)
        with contextlib.suppress(DecodeError):
            message.decode(version, b"")
        for damage in GREEDY if frame else ():
            position = places.randrange(len(frame))
            yield message, version, frame[:position] + damage + frame[position + len(damage) :]


def test_a_frame_of_smallest_elements_costs_memory_in_proportion() -> None:
    size = 20_000
    with traced():
        for message, version in every_version():
            for frame in (b"\1" * size, b"\2" * size, b"\0" * size, bytes([0, 0, 78, 32]) * 5000):
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                with contextlib.suppress(DecodeError):
                    message.decode(version, memoryview(frame))
                _, peak = tracemalloc.get_traced_memory()
                assert peak - before < BYTES_PER_BYTE * size, (message, version)


@contextlib.contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
