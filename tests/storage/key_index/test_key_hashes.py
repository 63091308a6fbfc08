"""Keys and ids of a batch that are indexed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.batch import HEADER_BYTES, parse_header
from protocol.records.builder import NewRecord, build_batch
from storage.key_index.key_hashes import Collection, id_hash, key_hash

headers = st.lists(
    st.tuples(
        st.sampled_from(["message-id", "x-message-id", "other"]),
        st.none() | st.binary(max_size=200),
    ),
    max_size=3,
).map(tuple)
records = st.builds(
    NewRecord,
    st.integers(0, 2**40),
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=20_000) | st.just(b"message-id"),
    headers,
)


def hashes_of(batch: bytes, count: int) -> tuple[set[int], bool]:
    collection = Collection()
    collection.add(batch, HEADER_BYTES, len(batch), count)
    is_ascending = collection.is_ascending
    return set(collection.take_hashes()), is_ascending


def expected(batch: list[NewRecord]) -> set[int]:
    keys = {key_hash(one.key) for one in batch if one.key is not None}
    ids = {
        id_hash(value)
        for one in batch
        for name, value in one.headers
        if name == "message-id" and value is not None
    }
    return keys | ids


@given(st.lists(records, min_size=1, max_size=20))
def test_no_key_and_no_id_is_left_out(batch: list[NewRecord]) -> None:
    found, is_ascending = hashes_of(bytes(build_batch(batch)), len(batch))

    assert expected(batch) <= found
    has_such_bytes = any(
        b"message-id" in (part or b"")
        for one in batch
        for part in (one.key, one.value, *(name.encode() for name, _ in one.headers))
    )
    if not has_such_bytes:
        assert found == expected(batch)
    first = batch[0].timestamp
    assert is_ascending == all(one.timestamp >= first for one in batch)


@given(st.integers(4, 200), st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_records_that_are_laid_out_alike_are_found_as_well(
    count: int, key_size: int, value_size: int, has_ids: bool
) -> None:
    batch = [
        NewRecord(
            1000 + index // 2,
            b"%0*d" % (key_size, index),
            bytes(value_size),
            (("message-id", b"%05d" % index),) if has_ids else (),
        )
        for index in range(count)
    ]

    assert hashes_of(bytes(build_batch(batch)), count)[0] == expected(batch)


def test_a_record_older_than_the_first_of_its_batch_is_noticed_among_records_that_are_alike() -> (
    None
):
    times = [1000] * 10
    times[7] -= 1
    batch = bytes(build_batch([NewRecord(time, b"key", b"value") for time in times]))

    assert not hashes_of(batch, 10)[1]


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50))
def test_bytes_that_are_no_records_are_refused_or_at_least_end(data: bytes, count: int) -> None:
    collection = Collection()
    try:
        collection.add(data, 0, len(data), count)
    except ApiError:
        return
    for value in collection.take_hashes():
        assert 0 <= value < 1 << 32


def test_a_wrong_count_is_refused() -> None:
    batch = bytes(build_batch([NewRecord(1000, b"key", b"value" * index) for index in range(5)]))
    assert parse_header(batch).record_count == 5
    for count in (4, 6):
        with pytest.raises(ApiError):
            hashes_of(batch, count)


def test_an_id_is_no_key() -> None:
    assert key_hash(b"4711") != id_hash(b"4711")
