"""JKS whose bytes do not say what they should."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.tls.jks import MAGIC, read_jks
from broker.security.tls.store_error import StoreFormatError
from tests.support.certificates import PASSWORD, Authority, key_pem

if TYPE_CHECKING:
    from pathlib import Path


def signed(content: bytes, password: str = PASSWORD) -> bytes:
    phrase = password.encode("utf-16-be") + b"Mighty Aphrodite"
    return content + hashlib.sha1(phrase + content).digest()


def store(*, version: int = 2, count: int = 0, entries: bytes = b"") -> bytes:
    return signed(MAGIC + version.to_bytes(4, "big") + count.to_bytes(4, "big") + entries)


@pytest.mark.process
def test_what_keytool_wrote_is_read(tmp_path: Path) -> None:
    issued = Authority().issue("server", tmp_path)

    read = read_jks(issued.jks().read_bytes(), PASSWORD)

    [entry] = read.keys
    assert key_pem(entry.open(PASSWORD)) == issued.key_pem()
    assert entry.chain == tuple(issued.chain)
    assert read.certificates == ()


def test_an_empty_store_is_empty() -> None:
    assert read_jks(store(), PASSWORD).keys == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the password is wrong, or the file damaged"),
        (signed(b"PK\x03\x04" + bytes(20)), "it is not in the format JKS"),
        (store(version=3), "its version of JKS is 3, not 1 or 2"),
        (store(count=0xFFFFFFFF), "the file ends too early"),
        (store(count=1, entries=bytes([0, 0, 0, 3]) + bytes(10)), "an entry of kind 3"),
        (
            store(count=1, entries=b"\0\0\0\1" + bytes(10) + b"\x7f\xff\xff\xff"),
            "the file ends too early",
        ),
    ],
)
def test_other_bytes_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(StoreFormatError, match=reason):
        read_jks(content, PASSWORD)


@given(st.binary(max_size=120), st.integers(0, 3))
def test_drawn_entries_are_refused(entries: bytes, kind: int) -> None:
    content = store(count=1, entries=kind.to_bytes(4, "big") + entries)
    try:
        for entry in read_jks(content, None).keys:
            entry.open(PASSWORD)
    except StoreFormatError:
        return
    assert kind == 1, "only a key may be there with no certificate that had to be read"
