"""Records found by an index, against those found by reading all of the segment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.batch import assign_log_append_time
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.control import ControlType
from storage.errors import DamagedFileError
from storage.key_index import batch_source, index_builder
from storage.key_index.query import Query
from tests.storage.key_index.indexing import OneSegment
from tests.storage.produced import Producer, marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYS = [b"", b"a", b"b", b"key", b"a longer key" * 20]
CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]

records = st.builds(
    NewRecord,
    st.integers(1000, 1100),
    st.none() | st.sampled_from(KEYS),
    st.none() | st.sampled_from([b"", b"value", b"a" * 300]),
    st.sampled_from([(), (("message-id", b"a"),), (("other", None), ("message-id", b"key"))]),
)
batches = st.lists(
    st.tuples(st.lists(records, min_size=1, max_size=8), st.sampled_from(CODECS)),
    min_size=1,
    max_size=30,
)
queries = st.builds(
    Query,
    st.sampled_from([None, *KEYS, b"nobody"]),
    st.sampled_from([None, b"a", b"key", b"nobody"]),
    st.integers(990, 1110),
    st.integers(990, 1110),
).filter(lambda query: query.key is not None or query.message_id is not None)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that a few batches fill many of them, and several parts."""
    monkeypatch.setattr(index_builder, "BLOCK_BYTES", 150)
    monkeypatch.setattr(index_builder, "PART_ENTRIES", 10)


def matching(all_records: list[NewRecord], query: Query) -> list[int]:
    return [
        offset
        for offset, one in enumerate(all_records)
        if (query.key is None or one.key == query.key)
        and (query.message_id is None or ("message-id", query.message_id) in one.headers)
        and query.from_ms <= one.timestamp <= query.to_ms
    ]


@settings(max_examples=200)
@given(st.data())
@pytest.mark.usefixtures("small_blocks")
def test_an_index_leads_to_all_records_of_a_key(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directory = tmp_path_factory.mktemp("segment")
    segment = OneSegment(directory)
    all_records: list[NewRecord] = []
    for batch, codec in data.draw(batches):
        segment.append(batch, codec)
        all_records += batch
    segment.write()
    segment.build()
    for query in data.draw(st.lists(queries, min_size=1, max_size=5)):
        expected = matching(all_records, query)
        indexed = segment.search(query)
        assert (indexed.offsets, indexed.damage, indexed.has_index) == (expected, None, True)
        assert segment.search(query, is_closed=False).offsets == expected
    shutil.rmtree(directory)


def many(count: int, value_bytes: int, per_batch: int = 20) -> Iterator[list[NewRecord]]:
    """Records of different keys in batches."""
    value = os.urandom(value_bytes)
    for first in range(0, count, per_batch):
        numbers = range(first, first + per_batch)
        yield [NewRecord(1000 + at, b"key-%08d" % (at * 7919 % count), value) for at in numbers]


@pytest.mark.parametrize(
    ("count", "value_bytes", "share"), [(20_000, 1000, 0.006), (200_000, 100, 0.02)]
)
def test_an_index_is_small_and_leads_to_hardly_anything_in_vain(
    tmp_path: Path, count: int, value_bytes: int, share: float
) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(count, value_bytes))
    size, entries = segment.build()

    assert entries == count
    assert size <= share * len(segment.data)
    assert size == Path(segment.index_path).stat().st_size
    for number in (0, 17, count - 1):
        found = segment.search(Query(b"key-%08d" % (number * 7919 % count), None))
        assert found.offsets == [number]
        assert found.bytes_read <= 1 << 20
    in_vain = sum(segment.search(Query(b"none-%d" % at, None)).bytes_read for at in range(100))
    assert in_vain <= 100 * 150_000


def test_blocks_outside_the_wanted_time_are_not_read(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.fill([[NewRecord(1000 + at, b"key", bytes(10_000))] for at in range(500)])
    segment.build()

    found = segment.search(Query(b"key", None, 1100, 1102))

    assert found.offsets == [100, 101, 102]
    assert found.bytes_read < 300_000


def test_markers_are_no_records_and_log_append_time_counts(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.add(bytes(marker(Producer(), ControlType.COMMIT)), 1)
    stamped = build_batch(
        [NewRecord(1000 + at, b"key", b"value") for at in range(5)], base_offset=1
    )
    assign_log_append_time(stamped, 0, 5000)
    segment.add(stamped, 5)
    segment.write()
    segment.build()

    assert segment.search(Query(b"key", None, 5000, 5000)).offsets == [1, 2, 3, 4, 5]
    assert segment.search(Query(b"key", None, 0, 4999)).offsets == []
    assert segment.search(Query(b"\0\0\0\1", None)).offsets == []


def test_a_large_batch_is_a_block(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(9_000, 1000, per_batch=3_000))
    segment.build()

    assert segment.search(Query(b"key-%08d" % (4000 * 7919 % 9000), None)).offsets == [4000]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut off": lambda data: data[:-4096],
    "cut in a page": lambda data: data[:5000],
    "zeros": lambda data: bytes(len(data)),
    "bit of the header": lambda data: bytes([data[0], data[1] ^ 1]) + data[2:],
    "garbage": lambda data: os.urandom(len(data)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_key_index_is_not_used(tmp_path: Path, name: str) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(1000, 500))
    segment.build()
    path = Path(segment.index_path)
    path.write_bytes(DAMAGES[name](path.read_bytes()))

    found = segment.search(Query(b"key-00000919", None))

    assert found.offsets == [1]
    assert found.damage is not None
    assert not found.has_index


def test_a_search_works_without_an_unreadable_index(
    tmp_path: Path,
) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(100, 500))
    Path(segment.index_path).mkdir()  # as root may read whatever there is

    found = segment.search(Query(b"key-00000019", None))

    assert found.offsets == [1]
    assert found.damage is not None


def test_a_key_index_of_another_log_of_the_same_size_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one, other = OneSegment(tmp_path / "one"), OneSegment(tmp_path / "other")
    one.fill([NewRecord(1000, b"key-%d" % at, b"value")] for at in range(1000, 1100))
    other.fill([NewRecord(1000, b"yek-%d" % at, b"value")] for at in range(1000, 1100))
    assert len(one.data) == len(other.data)
    one.build()
    shutil.copy(one.index_path, other.index_path)

    found = other.search(Query(b"yek-1017", None))

    assert found.offsets == [17]
    assert found.damage is not None
    assert "not what was indexed" in found.damage


def test_a_key_index_older_than_its_log_is_not_used(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(100, 500))
    segment.build()
    segment.fill(many(100, 100))

    found = segment.search(Query(b"key-00000019", None))

    assert found.offsets == [1, 101]
    assert found.damage is not None


def test_a_log_that_is_damaged_is_not_indexed(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(100, 500))
    good = bytes(segment.data)
    for damaged in (good[:-1], good[:700], good + b"x" * 70, b"", os.urandom(len(good))):
        segment.data = bytearray(damaged)
        segment.write()
        with pytest.raises(ApiError):
            segment.build()


def test_a_segment_that_is_deleted_while_it_is_searched_is_searched_to_its_end(
    tmp_path: Path,
) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(1000, 500))
    expected = segment.search(Query(b"key-00000919", None)).offsets
    read_batches = batch_source.batches_in

    def deleted_after_the_first(*arguments: Any) -> Any:
        for path in (segment.path, segment.index_path):
            Path(path).unlink(missing_ok=True)
        return read_batches(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.key_index.segment_search.batches_in", deleted_after_the_first)
        assert segment.search(Query(b"key-00000919", None)).offsets == expected
    with pytest.raises(FileNotFoundError):
        segment.search(Query(b"key-00000919", None))


def test_an_impossible_batch_length_allocates_nothing(tmp_path: Path) -> None:
    segment = OneSegment(tmp_path)
    segment.fill(many(20, 500))
    segment.data[8:12] = (2**31 - 1).to_bytes(4, "big")
    segment.write()

    with pytest.raises(DamagedFileError, match="no batch at byte 0"):
        segment.build()
