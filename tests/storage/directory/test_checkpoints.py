"""Checkpoint files, `partition.metadata` and `meta.properties`: their bytes, and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.uuids import from_base64
from storage.directory import meta_properties, partition_metadata
from storage.directory.checkpoints import decode_offsets, encode_offsets, read_offsets
from storage.directory.meta_properties import MetaProperties
from storage.errors import DamagedFileError
from storage.filesystem import LocalFileSystem

if TYPE_CHECKING:
    from pathlib import Path


def test_offsets_are_a_version_a_count_and_lines() -> None:
    data = encode_offsets({("flights", 0): 1204, ("a-b", 12): 0})

    assert data == b"0\n2\nflights 0 1204\na-b 12 0\n"
    assert decode_offsets(data) == {("flights", 0): 1204, ("a-b", 12): 0}
    assert encode_offsets({}) == b"0\n0\n"


@pytest.mark.parametrize(
    "data", [b"0", b"1\n0\n", b"0\n1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"0\nx\n", b"\xff"]
)
def test_damage_is_noticed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(data)

    with pytest.raises(DamagedFileError):
        decode_offsets(data)
    offsets, problem = read_offsets(LocalFileSystem(), str(path))
    assert offsets == {}
    assert problem


@given(st.binary(max_size=60))
def test_no_bytes_end_in_another_error(data: bytes) -> None:
    for decode in (decode_offsets, meta_properties.decode, partition_metadata.decode):
        try:
            decode(data)
        except DamagedFileError:
            continue


def test_missing_or_empty_checkpoint_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    assert read_offsets(LocalFileSystem(), str(tmp_path / "empty")) == ({}, "")
    assert read_offsets(LocalFileSystem(), str(tmp_path / "none")) == ({}, "")


def test_partition_metadata_is_apaches() -> None:
    topic_id = from_base64("sOVtLOzlQ8KMSKRHENxqnQ")

    data = partition_metadata.encode(topic_id)

    assert data == b"version: 0\ntopic_id: sOVtLOzlQ8KMSKRHENxqnQ"
    assert partition_metadata.decode(data) == topic_id


@pytest.mark.parametrize(
    "data", [b"", b"version: 1\ntopic_id: sOVtLOzlQ8KMSKRHENxqnQ", b"version: 0\ntopic_id: x"]
)
def test_damaged_partition_metadata_is_noticed(data: bytes) -> None:
    with pytest.raises(DamagedFileError):
        partition_metadata.decode(data)


def test_partition_metadata_may_be_missing(tmp_path: Path) -> None:
    filesystem = LocalFileSystem()

    assert partition_metadata.read(filesystem, str(tmp_path)) is None
    partition_metadata.write(filesystem, str(tmp_path), UUID(int=7))
    assert partition_metadata.read(filesystem, str(tmp_path)) == UUID(int=7)


def test_meta_properties_are_those_of_zookeeper_mode() -> None:
    data = meta_properties.encode(1, "KiZ1l6vwRt6LIxwCL5yYnA", 1_795_229_963_862)

    assert data.decode().splitlines() == [
        "#",
        "#Sat Nov 21 02:59:23 UTC 2026",
        "broker.id=1",
        "version=0",
        "cluster.id=KiZ1l6vwRt6LIxwCL5yYnA",
    ]
    assert meta_properties.decode(data) == MetaProperties(1, "KiZ1l6vwRt6LIxwCL5yYnA")


def test_meta_properties_of_kraft_are_understood() -> None:
    data = b"#\n#date\nnode.id=3\ndirectory.id=x\nversion=1\ncluster.id=abc\n"

    assert meta_properties.decode(data) == MetaProperties(3, "abc")


def test_a_number_that_is_cut_off_is_not_taken_for_a_smaller_one() -> None:
    """After a power failure; a leader once made its followers truncate to 2, for 240."""
    whole = encode_offsets({("flights", 0): 240})

    for length in range(1, len(whole)):
        with pytest.raises(DamagedFileError):
            decode_offsets(whole[:length])
