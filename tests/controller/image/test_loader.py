"""Batches become images and are published; open transactions are not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.image.loader import MetadataLoader
from controller.image.metadata_image import Provenance
from protocol.metadata_log.log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from protocol.metadata_log.topic_records import RemoveTopicRecord
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    import pytest

    from controller.image.delta import MetadataDelta
    from controller.image.metadata_image import MetadataImage


class Recorder:
    """A publisher that keeps the features of each image that it is handed, or fails."""

    def __init__(self, name: str = "recorder", *, fails: bool = False) -> None:
        self.name = name
        self.fails = fails
        self.seen: list[set[str]] = []

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self.fails:
            raise RuntimeError("planted")
        self.seen.append(set(image.features))


def feature(name: str) -> FeatureLevelRecord:
    return FeatureLevelRecord(name=name, feature_level=1)


def test_open_transaction_is_published_when_it_ends() -> None:
    loader, recorder = MetadataLoader(), Recorder()
    loader.install([recorder])
    loader.load_batch([feature("a"), BeginTransactionRecord(), feature("b")], Provenance(2))
    assert loader.image.provenance.offset == 0
    loader.load_batch([feature("c")], Provenance(3))
    loader.load_batch([EndTransactionRecord(), feature("d")], Provenance(5))
    assert recorder.seen == [set(), {"a"}, {"a", "b", "c", "d"}]


def test_aborted_transaction_leaves_nothing_behind() -> None:
    loader = MetadataLoader()
    loader.load_batch([feature("a"), BeginTransactionRecord(), feature("b")], Provenance(2))
    loader.load_batch([AbortTransactionRecord(), feature("c")], Provenance(4))
    assert set(loader.image.features) == {"a", "c"}
    assert loader.image.provenance.offset == 4


def test_snapshot_drops_an_open_transaction() -> None:
    loader = MetadataLoader()
    loader.load_batch([BeginTransactionRecord(), feature("a")], Provenance(1))
    loader.load_snapshot([feature("b")], Provenance(9))
    assert set(loader.image.features) == {"b"}
    assert loader.fault_count == 0


def test_record_that_fails_is_logged_and_the_others_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loader = MetadataLoader()
    with caplog.at_level(logging.ERROR):
        records = [RemoveTopicRecord(topic_id=ZERO_UUID), feature("a")]
        loader.load_batch(records, Provenance(8))
    assert set(loader.image.features) == {"a"}
    assert loader.fault_count == 1
    assert "offset 7 not replayed: RemoveTopicRecord" in caplog.text


def test_publisher_that_fails_spoils_no_other(caplog: pytest.LogCaptureFixture) -> None:
    loader, second = MetadataLoader(), Recorder()
    loader.install([Recorder("broken", fails=True), second])
    with caplog.at_level(logging.ERROR):
        loader.load_batch([feature("a")], Provenance(0))
    assert second.seen == [set(), {"a"}]
    assert loader.publish_fault_count == 2
    assert "metadata publisher broken failed at offset 0" in caplog.text
