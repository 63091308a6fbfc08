"""The bytes of bootstrap checkpoints, beside those of Apache Kafka in `checkpoints.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.bootstrap.checkpoint import FILE_NAME, bootstrap_records, encode_checkpoint
from controller.bootstrap.feature_levels import starting_levels
from controller.bootstrap.metadata_versions import of_release
from controller.bootstrap.voters import parse_voters, voters_record
from controller.image.features import KRAFT_VERSION
from controller.image.loader import MetadataLoader
from controller.image.metadata_image import Provenance
from protocol.metadata_log.frames import decode_metadata_record
from protocol.metadata_log.security_records import UserScramCredentialRecord
from protocol.records.batch import compute_crc, iterate_headers, parse_header
from protocol.records.record import iterate_records
from protocol.scram_types import ScramMechanism, credential_from, salted_password

VOTERS = (
    "3@c.example:9095:MvDxzVmcRsaTz33bUuRU6A,1@a.example:9093:Wd5U2HhR-pqiYcbCZ0UuEA,"
    "2@b.example:9094:JEXY6aqzQY-32P5TStzaFg"
)
SALT = b"1lv4pdnw4fwq7notcxm0yy1k7q"


def apaches(name: str) -> bytes:
    text = Path(__file__).with_name("checkpoints.txt").read_text(encoding="ascii")
    (found,) = (part for part in text.split("\n\n") if part.startswith(f"{name}\n"))
    return bytes.fromhex(found.removeprefix(f"{name}\n"))


def with_times_of(ours: bytes, theirs: bytes) -> bytes:
    """Our bytes with the time of each batch, and of the header, that is in theirs."""
    content = bytearray(ours)
    for position, header in iterate_headers(ours):
        begin, end = position, position + header.size_in_bytes
        content[begin + 27 : begin + 43] = theirs[begin + 27 : begin + 43]  # first and last time
        if position == 0:
            content[begin + 73 : begin + 81] = theirs[begin + 73 : begin + 81]
        content[begin + 17 : begin + 21] = compute_crc(content, begin, end - begin).to_bytes(
            4, "big"
        )
    return bytes(content)


def alice() -> UserScramCredentialRecord:
    mechanism = ScramMechanism.SCRAM_SHA_256
    salted = salted_password(mechanism, b"alice-secret", SALT, 4096)
    credential = credential_from(mechanism, salted, SALT, 4096)
    return UserScramCredentialRecord(
        name="alice",
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


@pytest.mark.parametrize(
    ("name", "voters", "credentials", "is_dynamic"),
    [
        ("static_voters", None, [], False),
        ("no_initial_controllers", None, [], True),
        ("three_initial_controllers", VOTERS, [], True),
        ("scram", None, [alice()], False),
    ],
)
def test_checkpoint_is_that_of_apache_byte_for_byte(
    name: str, voters: str | None, credentials: list[UserScramCredentialRecord], is_dynamic: bool
) -> None:
    theirs = apaches(name)
    levels = starting_levels(None, (), is_dynamic=is_dynamic)
    record = None if voters is None else voters_record(parse_voters(voters), "CONTROLLER")

    ours = encode_checkpoint(
        bootstrap_records(levels, credentials), levels[KRAFT_VERSION], record, 1_795_806_766_643
    )

    assert len(ours) == len(theirs)
    assert with_times_of(ours, theirs) == theirs


def test_every_batch_has_the_time_of_formatting() -> None:
    levels = starting_levels(None, (), is_dynamic=False)

    content = encode_checkpoint(bootstrap_records(levels), 0, None, now_ms=1234)

    headers = [header for _, header in iterate_headers(content)]
    assert {header.base_timestamp for header in headers} == {1234}
    assert parse_header(content).partition_leader_epoch == 0
    assert content[73:81] == (1234).to_bytes(8, "big")


def test_file_is_named_after_offset_and_epoch_zero() -> None:
    assert FILE_NAME == "00000000000000000000-0000000000.checkpoint"


def test_image_of_the_checkpoint_has_its_levels_and_credentials() -> None:
    levels = starting_levels(of_release("4.0", unstable=False), (), is_dynamic=True)
    content = encode_checkpoint(bootstrap_records(levels, [alice()]), 1, None, now_ms=1234)
    records = [
        decode_metadata_record(record.value or b"")[0]
        for position, header in iterate_headers(content)
        if not header.is_control
        for record in iterate_records(content[position : position + header.size_in_bytes])
    ]
    loader = MetadataLoader()

    loader.load_snapshot(records, Provenance(len(records), 0, 1234))

    assert loader.fault_count == 0
    assert loader.image.metadata_version == 25
    assert dict(loader.image.features) == {
        "metadata.version": 25,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert [user for user, _ in loader.image.scram_credentials.items()] == [
        ("alice", ScramMechanism.SCRAM_SHA_256)
    ]
