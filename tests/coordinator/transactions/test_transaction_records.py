"""Records of `__transaction_state`: bytes as Apache writes them, and what is not ours."""

from __future__ import annotations

import pytest

from coordinator.transactions.records import TransactionFormat, TransactionRecord
from coordinator.transactions.states import TransactionState
from coordinator.transactions.transaction import Transaction
from protocol.wire import DecodeError

ONGOING = Transaction(
    "t",
    7,
    60_000,
    producer_epoch=3,
    previous_producer_id=7,
    state=TransactionState.ONGOING,
    partitions=frozenset({("flights", 2), ("flights", 0), ("hotels", 1)}),
    started_ms=11,
    updated_ms=12,
    client_version=2,
)
EMPTY = Transaction("t", 7, 60_000, producer_epoch=0, previous_producer_id=7, updated_ms=12)
FORMATS = pytest.mark.parametrize("version", [0, 1, 2])


@FORMATS
@pytest.mark.parametrize("transaction", [ONGOING, EMPTY])
def test_transaction_records_are_decoded_as_encoded(version: int, transaction: Transaction) -> None:
    record_format = TransactionFormat(lambda: version)
    record = TransactionRecord("t", transaction)
    read = record_format.decode(
        record_format.encode_key(record), record_format.encode_value(record)
    )
    assert read is not None
    if version:
        assert read == record
    else:
        assert read.transaction is not None
        assert read.transaction.previous_producer_id == -1
        assert read.transaction.client_version == 0
        assert read.transaction.partitions == transaction.partitions


def test_bytes_of_version_0() -> None:
    record = TransactionRecord("t", ONGOING)
    record_format = TransactionFormat(lambda: 0)
    assert record_format.encode_key(record).hex() == "0000000174"
    assert record_format.encode_value(record) == bytes.fromhex(
        "0000"  # version
        "0000000000000007"  # producer id
        "0003"  # epoch
        "0000ea60"  # timeout
        "01"  # ongoing
        "00000002"
        "0007666c6967687473000000020000000000000002"
        "0006686f74656c730000000100000001"
        "000000000000000c"  # last update
        "000000000000000b"  # start
    )


def test_an_empty_transaction_has_no_list_of_partitions() -> None:
    value = TransactionFormat(lambda: 0).encode_value(TransactionRecord("t", EMPTY))
    assert value is not None
    assert value[17:21].hex() == "ffffffff"


def test_a_tombstone_forgets() -> None:
    record_format = TransactionFormat(lambda: 2)
    gone = TransactionRecord("t", None)
    assert record_format.encode_value(gone) is None
    assert record_format.decode(record_format.encode_key(gone), None) == gone


def test_a_key_of_another_kind_is_passed_over() -> None:
    assert TransactionFormat(lambda: 2).decode(b"\0\x01anything", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", b""),
        (b"\0\0\0\5t", b""),
        (b"\0\0\0\1t", b"\0"),
        (b"\0\0\0\1t", b"\0\x09" + bytes(40)),
        (b"\0\0\0\1t", b"\0\0" + bytes(14) + b"\x09" + bytes(20)),
        (b"\0\0\0\1t", b"\0\0" + bytes(10)),
    ],
)
def test_damaged_transaction_records_are_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(DecodeError):
        TransactionFormat(lambda: 2).decode(key, value)
