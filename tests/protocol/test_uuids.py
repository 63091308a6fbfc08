"""UUIDs as Kafka writes them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.uuids import (
    METADATA_TOPIC_UUID,
    ZERO_UUID,
    draw_uuid,
    from_base64,
    from_random_bytes,
    is_reserved,
    is_usable,
    to_base64,
)


def test_text_has_22_characters() -> None:
    assert to_base64(ZERO_UUID) == "A" * 22
    assert to_base64(UUID(int=2**128 - 1)) == "_" * 21 + "w"


@given(st.binary(min_size=16, max_size=16))
def test_text_comes_back(raw: bytes) -> None:
    value = UUID(bytes=raw)
    assert from_base64(to_base64(value)) == value


@pytest.mark.parametrize("text", ["", "A", "AAAA", "A" * 21, "A" * 24, "é" * 22, "A" * 10 + "="])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64 UUID"):
        from_base64(text)


@given(st.binary(min_size=16, max_size=16))
def test_random_bytes_make_a_version_4_uuid(raw: bytes) -> None:
    assert from_random_bytes(raw).version == 4


def test_reserved_ids_and_those_with_a_leading_dash_are_not_usable() -> None:
    assert not is_usable(ZERO_UUID)
    assert not is_usable(METADATA_TOPIC_UUID)
    assert not is_usable(UUID(bytes=b"\xf8" + bytes(15)))
    assert is_usable(UUID(int=7))


def test_first_hundred_uuids_are_reserved_for_directories() -> None:
    assert [is_reserved(UUID(int=number)) for number in (0, 99, 100)] == [True, True, False]


def test_drawn_uuid_is_the_first_that_is_usable() -> None:
    drawn = iter([b"\xf8" + bytes(15), bytes(range(16))])  # the first begins with a dash

    assert draw_uuid(lambda _: next(drawn)) == from_random_bytes(bytes(range(16)))
