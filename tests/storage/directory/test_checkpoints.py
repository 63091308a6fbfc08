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
    identity = MetaProperties(1, "KiZ1l6vwRt6LIxwCL5yYnA")
    data = meta_properties.encode(identity, 1_795_229_963_862)

    assert data.decode().splitlines() == [
        "#",
        "#Sat Nov 21 02:59:23 UTC 2026",
        "broker.id=1",
        "version=0",
        "cluster.id=KiZ1l6vwRt6LIxwCL5yYnA",
    ]
    assert meta_properties.decode(data) == identity


def test_meta_properties_of_a_formatted_directory_are_those_of_apache() -> None:
    data = (
        b"#\n#Fri Nov 27 19:12:51 UTC 2026\nnode.id=3\ndirectory.id=Wd5U2HhR-pqiYcbCZ0UuEA\n"
        b"version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    identity = meta_properties.decode(data)

    directory_id = from_base64("Wd5U2HhR-pqiYcbCZ0UuEA")
    assert identity == MetaProperties(3, "4L6g3nShT-eMCtK--X86sw", directory_id, version=1)
    assert meta_properties.encode(identity, 1_795_806_771_000) == data


@pytest.mark.parametrize("cluster_id", ["a b=\u00fc:#!\\", " blank", "tab\tand\nline", "", "\\"])
def test_odd_cluster_ids_come_back(cluster_id: str) -> None:
    identity = MetaProperties(1, cluster_id, version=1)

    decoded = meta_properties.decode(meta_properties.encode(identity, 0))

    assert decoded.cluster_id == cluster_id.strip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=1\ncluster.id=abc\n", "node.id is missing"),
        ("version=1\nnode.id=3\n", "cluster.id is missing"),
        ("version=1\nnode.id=3\ncluster.id=abc\ndirectory.id=x\n", "directory.id is not"),
        ("version=2\nnode.id=3\ncluster.id=abc\n", "version '2' is unknown"),
        ("version=0\nbroker.id=\\u00zz\n", "is not an escape"),
    ],
)
def test_meta_properties_that_lack_something_are_damaged(text: str, reason: str) -> None:
    with pytest.raises(DamagedFileError, match=reason):
        meta_properties.decode(text.encode())


def test_a_number_that_is_cut_off_is_not_taken_for_a_smaller_one() -> None:
    """After a power failure; a leader once made its followers truncate to 2, for 240."""
    whole = encode_offsets({("flights", 0): 240})

    for length in range(1, len(whole)):
        with pytest.raises(DamagedFileError):
            decode_offsets(whole[:length])
