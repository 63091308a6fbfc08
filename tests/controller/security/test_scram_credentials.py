"""SCRAM credentials are written and read as Apache Kafka does, and held as the store has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.security.scram_credentials import (
    MalformedCredentialError,
    ScramUsers,
    format_credential,
    parse_credential,
)
from protocol.scram_types import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

SHA_256, SHA_512 = ScramMechanism
BY_KAFKA = (
    "salt=MTIzNA==,stored_key=oQVtKZAxSy5bMwtGaXZzZQ==,server_key=Zm9vYmFyYmF6cXV4MTIzNA==,"
    "iterations=8192"
)


def test_credentials_of_apache_kafka_are_read_and_written_unchanged() -> None:
    credential = parse_credential(BY_KAFKA)
    assert (credential.salt, credential.iterations) == (b"1234", 8192)
    assert format_credential(credential) == BY_KAFKA


@given(st.binary(), st.binary(min_size=1), st.binary(min_size=1), st.integers(1, 1 << 30))
def test_every_credential_survives_being_stored(
    salt: bytes, stored_key: bytes, server_key: bytes, iterations: int
) -> None:
    credential = ScramCredential(salt, stored_key, server_key, iterations)
    assert parse_credential(format_credential(credential)) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "password=c2VjcmV0",
        BY_KAFKA.replace("8192", "many"),
        BY_KAFKA.replace("8192", "0"),
        BY_KAFKA.replace("MTIzNA==", "c2VjcmV0!"),
        BY_KAFKA.replace("stored_key=oQVtKZAxSy5bMwtGaXZzZQ==", "stored_key="),
        f"{BY_KAFKA},salt=MTIzNA==",
        f"{BY_KAFKA},more=1",
    ],
)
def test_a_malformed_credential_is_refused_without_its_content(text: str) -> None:
    with pytest.raises(MalformedCredentialError) as refusal:
        parse_credential(text)
    assert "c2VjcmV0" not in str(refusal.value)
    assert "oQVtKZ" not in str(refusal.value)


def told(users: ScramUsers, entity: str, values: Mapping[str, str]) -> ScramUsers:
    asyncio.run(users.changed("users", entity, values))
    return users


def test_users_come_change_and_go_by_their_names_outside_of_paths() -> None:
    users = told(ScramUsers(), "a%20b", {"SCRAM-SHA-256": BY_KAFKA, "producer_byte_rate": "1"})
    assert users.credential(SHA_256, "a b") == parse_credential(BY_KAFKA)
    assert users.credential(SHA_512, "a b") is None
    assert users.credential(SHA_256, "a%20b") is None
    assert users.names == ["a b"]
    told(users, "a%20b", {"SCRAM-SHA-512": BY_KAFKA.replace("8192", "4096")})
    assert [one.iterations for one in users.credentials("a b").values()] == [4096]
    assert users.credential(SHA_256, "a b") is None
    assert told(users, "a%20b", {"producer_byte_rate": "1"}).names == []


@pytest.mark.parametrize("entity", ["<default>", "a/clients/c"])
def test_only_users_with_a_name_have_credentials(entity: str) -> None:
    assert told(ScramUsers(), entity, {"SCRAM-SHA-256": BY_KAFKA}).names == []


def test_a_malformed_credential_is_ignored_and_logged_without_its_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    values = {"SCRAM-SHA-256": "salt=c2VjcmV0", "SCRAM-SHA-512": BY_KAFKA}
    users = told(told(ScramUsers(), "alice", {"SCRAM-SHA-256": BY_KAFKA}), "alice", values)
    assert list(users.credentials("alice")) == [SHA_512]
    assert "SCRAM-SHA-256 credential of user alice ignored" in caplog.text
    assert "c2VjcmV0" not in caplog.text
    assert "oQVtKZ" not in caplog.text
