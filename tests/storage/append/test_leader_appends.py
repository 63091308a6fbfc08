"""Appending as the leader: offsets, epochs, timestamps, what is refused."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import compute_crc, parse_header
from storage.append.append_source import FROM_COORDINATOR
from storage.errors import DamagedFileError
from tests.storage.produced import NOW_MS, SMALL, all_offsets, append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path


def test_leader_gives_offsets_and_its_epoch_and_keeps_the_checksum(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, batch(3), epoch=4)
    data = batch(2)
    crc = parse_header(data).crc

    info = append(log, data, epoch=4)

    assert (info.first_offset, info.last_offset) == (3, 4)
    assert info.log_append_time_ms == -1
    header = parse_header(log.read(3, 1000, 5).tobytes())
    assert (header.base_offset, header.partition_leader_epoch, header.crc) == (3, 4, crc)
    assert log.log_end_offset == 5
    assert log.latest_epoch == 4


def test_bytes_on_disk_are_the_bytes_received_but_for_offset_and_epoch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    data = batch(3)
    received = bytes(data)

    append(log, data, epoch=9)

    stored = (tmp_path / "flights-0" / f"{0:020d}.log").read_bytes()
    assert stored[16:] == received[16:]
    assert stored[:8] == received[:8]
    assert stored[12:16] == (9).to_bytes(4, "big")


def test_log_append_time_stamps_the_batch_and_its_checksum(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, message_timestamp_type="LogAppendTime")
    log = new_log(tmp_path, config)

    info = append(log, batch(2, timestamp=5))

    stored = log.read(0, 1000, 2).tobytes()
    header = parse_header(stored)
    assert info.log_append_time_ms == info.max_timestamp == header.max_timestamp == NOW_MS
    assert header.is_log_append_time
    assert header.crc == compute_crc(stored, 0, len(stored))


def test_timestamp_type_is_that_of_the_configuration_at_the_time(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.config = dataclasses.replace(SMALL, message_timestamp_type="LogAppendTime")

    assert append(log, batch(timestamp=5)).max_timestamp == NOW_MS


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (TopicConfig(max_message_bytes=100), ErrorCode.MESSAGE_TOO_LARGE),
        (TopicConfig(segment_bytes=100), ErrorCode.RECORD_LIST_TOO_LARGE),
    ],
)
def test_batch_over_a_limit_is_refused_and_nothing_appended(
    tmp_path: Path, config: TopicConfig, code: ErrorCode
) -> None:
    log = new_log(tmp_path, config)

    with pytest.raises(ApiError) as refusal:
        append(log, batch(5))

    assert refusal.value.code == code
    assert (log.log_end_offset, log.size_in_bytes) == (0, 0)


def test_damaged_batch_is_refused(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    data = batch()
    data[-1] ^= 1

    with pytest.raises(ApiError) as refusal:
        append(log, data)

    assert refusal.value.code == ErrorCode.CORRUPT_MESSAGE


def test_client_may_not_send_two_batches_but_a_coordinator_may(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    two = bytes(batch(2)) + bytes(batch(3))

    with pytest.raises(ApiError) as refusal:
        append(log, memoryview(bytearray(two)))
    info = log.append_as_leader(memoryview(bytearray(two)), 0, NOW_MS, FROM_COORDINATOR)

    assert refusal.value.code == ErrorCode.INVALID_RECORD
    assert (info.first_offset, info.last_offset) == (0, 4)
    assert all_offsets(log) == [0, 1, 2, 3, 4]


def test_error_of_a_damaged_file_has_a_code_for_clients() -> None:
    assert DamagedFileError("x").code == ErrorCode.CORRUPT_MESSAGE
