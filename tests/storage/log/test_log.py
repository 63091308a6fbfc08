"""A log and its parts: what callers read of them, and what reaches all of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from tests.storage.produced import NOW_MS, SMALL, Producer, append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "log_start_offset",
        "log_end_offset",
        "high_watermark",
        "recovery_point",
        "cleaned_offset",
        "latest_epoch",
        "directory",
        "topic_id",
    ],
)
def test_fields_of_parts_are_read_here_and_changed_there(tmp_path: Path, name: str) -> None:
    log = new_log(tmp_path)
    append(log, batch(2), epoch=3)

    part = log.epochs if name == "latest_epoch" else log.offsets
    owner = log.place if name in {"directory", "topic_id"} else part
    assert getattr(log, name) == getattr(owner, name.replace("latest_epoch", "latest"))
    with pytest.raises(AttributeError):
        setattr(log, name, getattr(log, name))


def test_a_changed_configuration_applies_to_every_part_of_the_log(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))

    size = len(batch(2))
    log.config = dataclasses.replace(
        SMALL, flush_ms=7, segment_bytes=size, retention_ms=1, max_message_bytes=size
    )

    with pytest.raises(ApiError) as refused:
        append(log, batch(3))
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
    append(log, batch(2))
    assert (log.segments.base_offsets, log.rules.flush_ms) == ([0, 2], 7)
    assert log.delete_expired(NOW_MS + 100)
    assert log.log_start_offset == 4


def test_last_stable_offset_follows_the_first_open_transaction(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(2))
    append(log, batch(2, producer=Producer(7, is_transactional=True)))
    append(log, batch(2))

    assert (log.last_stable_offset, log.high_watermark) == (2, 6)
    log.truncate_to(2)
    assert (log.last_stable_offset, log.high_watermark) == (2, 2)
