"""Committed batches reach the image in order, whole, and in slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.metadata_log import metadata_feed
from broker.metadata_log.metadata_feed import MetadataFeed
from broker.runtime.slices import at_once
from controller.image.loader import MetadataLoader
from controller.image.metadata_image import Provenance
from protocol.metadata_log.batches import UnreadableMetadataError, control_record
from protocol.metadata_log.control_records import KRaftVersionRecord
from protocol.metadata_log.log_records import BeginTransactionRecord, EndTransactionRecord
from protocol.records.builder import NewRecord, build_batch
from tests.storage.metadata_log.opened import opened
from tests.support.broker_parts.metadata_leader import (
    NOW_MS,
    data_batch,
    feature,
    leader_change,
)
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from pathlib import Path

    from controller.image.delta import MetadataDelta
    from controller.image.metadata_image import MetadataImage


class Offsets:
    """A publisher that keeps the offset of each image."""

    name = "offsets"

    def __init__(self) -> None:
        self.seen: list[int] = []

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.seen.append(image.provenance.offset)


def fed(directory: Path, *batches: bytes) -> MetadataFeed:
    """A feed of a log with these batches, all of them committed."""
    log = opened(directory)
    for batch in batches:
        assert log.append(batch, NOW_MS) == ""
    log.log.advance_high_watermark(log.log.log_end_offset)
    return MetadataFeed(log, MetadataLoader(), one_step_at_a_time)


def advance(feed: MetadataFeed, offset: int) -> None:
    at_once(feed.steps(offset))


def test_control_batches_move_the_offset_only(tmp_path: Path) -> None:
    feed = fed(tmp_path, leader_change(1, 0, 1), data_batch([feature("a")], 1, 1))
    advance(feed, 1)
    assert feed.loader.image.provenance == Provenance(0, 1, NOW_MS)
    assert not feed.has_seen_record
    advance(feed, 2)
    assert feed.loader.image.provenance == Provenance(1, 1, NOW_MS + 1)
    assert feed.has_seen_record


def test_batch_that_is_not_committed_whole_waits(tmp_path: Path) -> None:
    feed = fed(
        tmp_path, data_batch([feature("a")], 0, 1), data_batch([feature(n) for n in "bc"], 1, 1)
    )
    advance(feed, 2)
    assert (feed.next_offset, sorted(feed.loader.image.features)) == (1, ["a"])
    advance(feed, 3)
    assert sorted(feed.loader.image.features) == ["a", "b", "c"]


def test_batches_become_one_image_up_to_a_limit_and_a_control_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_feed, "RECORDS_TOGETHER", 3)
    batches = [data_batch([feature(f"f{offset}")], offset, 1) for offset in range(5)]
    feed = fed(tmp_path, *batches, leader_change(1, 5, 2), data_batch([feature("g")], 6, 2))
    offsets = Offsets()
    feed.loader.install([offsets])

    advance(feed, 7)

    assert offsets.seen == [-1, 2, 4, 5, 6]
    assert feed.loader.image.provenance.epoch == 2


def test_feed_pauses_within_a_large_batch(tmp_path: Path) -> None:
    records = [feature(str(number)) for number in range(350)]
    batches = [data_batch(records[at : at + 10], at, 1) for at in range(0, 350, 10)]
    pauses = len(list(fed(tmp_path / "small", *batches).steps(350)))
    assert pauses >= 35


def test_image_stays_before_a_transaction_that_is_open(tmp_path: Path) -> None:
    feed = fed(
        tmp_path,
        data_batch([feature("a")], 0, 1),
        data_batch([BeginTransactionRecord(), feature("b")], 1, 1),
        leader_change(1, 3, 2),
        data_batch([feature("c"), EndTransactionRecord()], 4, 2),
    )
    seen = []
    for offset in (1, 4, 6):
        advance(feed, offset)
        seen.append((feed.loader.image.provenance.offset, feed.is_at_image))
    assert seen == [(0, True), (0, False), (5, True)]
    assert sorted(feed.loader.image.features) == ["a", "b", "c"]


def test_quorum_in_force_follows_the_control_records(tmp_path: Path) -> None:
    message = KRaftVersionRecord(version=0, kraft_version=1)
    record = control_record(message, NOW_MS)
    batch = build_batch([record], base_offset=0, leader_epoch=1, is_control=True)
    feed = fed(tmp_path, bytes(batch))
    assert feed.quorum.kraft_version == 0
    advance(feed, 1)
    assert feed.quorum.kraft_version == 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\x02\x0c\x00", "offset 1: a metadata record has frame version 2"),
        (b"\x01\x7f\x00", "offset 1: metadata records of type 127 are not known"),
        (b"\x01\x0c\x09", "offset 1: FeatureLevelRecord version 9 is not known"),
    ],
)
def test_unreadable_record_ends_the_feed_and_changes_no_image(
    tmp_path: Path, value: bytes, words: str
) -> None:
    bad = build_batch([NewRecord(NOW_MS, None, value)], base_offset=1, leader_epoch=1)
    feed = fed(tmp_path, data_batch([feature("a")], 0, 1), bytes(bad))
    with pytest.raises(UnreadableMetadataError, match=words):
        advance(feed, 2)
    assert feed.loader.image.provenance.offset == -1
    assert feed.next_offset == 0
