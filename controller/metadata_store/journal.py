"""Bytes of the embedded store's two files. Pure.

Journal, `embedded-metadata.journal`::

    header  = magic "EMJ1" | base zxid int64 | CRC-32 of the 12 bytes before it uint32
    frame   = length uint32 | CRC-32 of the payload uint32 | payload
    payload = transaction*
    transaction = zxid int64 | session int64 | operation count uint32 | operation*
    operation   = kind uint8 | path length uint16 | path | data length int32 (-1: none) | data

One fsync makes one frame durable, and the next frame is written only after it. So a frame with a
wrong checksum is a torn tail if no valid one follows it (its transactions were not acknowledged),
and damage if one does: then acknowledged transactions lie behind a hole, and nothing may be cut.

Snapshot, `embedded-metadata.snapshot`::

    magic "EMS1" | zxid int64 | node count uint32 | sequence count uint32 | body length uint64
    body = node* sequence*
    node     = path | data | version int32 | czxid int64 | mzxid int64 | owner int64
    sequence = path | next uint32
    CRC-32 of all before it uint32

Integers are big-endian; `path` and `data` are written as in an operation.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.metadata_store.store import Create, Delete, SetData, Znode
from controller.metadata_store.tree import Applied, ZnodeTree, parent_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

JOURNAL_MAGIC = b"EMJ1"
SNAPSHOT_MAGIC = b"EMS1"
HEADER_BYTES = 16

_HEADER = struct.Struct(">4sq")
_CRC = struct.Struct(">I")
_FRAME = struct.Struct(">II")
_TRANSACTION = struct.Struct(">qqI")
_PATH = struct.Struct(">H")
_OPERATION = struct.Struct(">BH")
_DATA = struct.Struct(">i")
_SNAPSHOT = struct.Struct(">4sqIIQ")
_STAT = struct.Struct(">iqqq")
_NEXT = struct.Struct(">I")

_CREATE, _CREATE_EPHEMERAL, _SET, _DELETE, _CREATE_SEQUENCE, _CREATE_EPHEMERAL_SEQUENCE = range(6)
_SEQUENCE_DIGITS = 10

_CREATE_KINDS = {
    (False, False): _CREATE,
    (True, False): _CREATE_EPHEMERAL,
    (False, True): _CREATE_SEQUENCE,
    (True, True): _CREATE_EPHEMERAL_SEQUENCE,
}
_CREATE_FLAGS = {kind: flags for flags, kind in _CREATE_KINDS.items()}


class DamagedFileError(Exception):
    """A file holds bytes that cannot be trusted; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One committed transaction as the journal keeps it."""

    zxid: int
    session: int
    operations: tuple[Create | SetData | Delete, ...]


@dataclass(frozen=True, slots=True)
class JournalContent:
    """The content of a journal."""

    base_zxid: int
    """The journal continues the snapshot of this transaction (or of a later one)."""
    transactions: list[Transaction]
    valid_bytes: int
    """Position of the next frame; bytes behind it are a torn tail."""


def encode_header(base_zxid: int) -> bytes:
    """Return the first bytes of a journal."""
    head = _HEADER.pack(JOURNAL_MAGIC, base_zxid)
    return head + _CRC.pack(zlib.crc32(head))


def encode_frame(group: Sequence[Applied]) -> bytes:
    """Return one frame with the transactions of a group commit."""
    parts: list[bytes] = []
    for applied in group:
        parts.append(_TRANSACTION.pack(applied.zxid, applied.session, len(applied.operations)))
        for operation in applied.operations:
            _encode_operation(operation, parts)
    payload = b"".join(parts)
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def decode_journal(content: bytes) -> JournalContent:
    """Read a journal up to its torn tail, if any. Raises DamagedFileError."""
    head = content[:HEADER_BYTES]
    if len(head) < HEADER_BYTES or head[:4] != JOURNAL_MAGIC:
        raise DamagedFileError("the header is not that of a metadata journal")
    if _CRC.unpack_from(head, _HEADER.size)[0] != zlib.crc32(head[: _HEADER.size]):
        raise DamagedFileError("the header does not match its checksum")
    transactions: list[Transaction] = []
    position = HEADER_BYTES
    while (payload := _payload_at(content, position)) is not None:
        transactions.extend(_decode_payload(payload))
        position += _FRAME.size + len(payload)
    later = _find_later_frame(content, position)
    if later is not None:
        raise DamagedFileError(
            f"the record at byte {position} is damaged, but a valid one follows at byte {later}"
        )
    return JournalContent(_HEADER.unpack_from(head)[1], transactions, position)


def encode_snapshot(
    zxid: int, nodes: Sequence[tuple[str, Znode]], sequences: Sequence[tuple[str, int]]
) -> bytes:
    """Return the whole snapshot file."""
    parts: list[bytes] = []
    for path, node in nodes:
        _encode_path(path, parts)
        _encode_data(node.data, parts)
        parts.append(_STAT.pack(node.version, node.czxid, node.mzxid, node.ephemeral_owner))
    for path, following in sequences:
        _encode_path(path, parts)
        parts.append(_NEXT.pack(following))
    body = b"".join(parts)
    head = _SNAPSHOT.pack(SNAPSHOT_MAGIC, zxid, len(nodes), len(sequences), len(body))
    return head + body + _CRC.pack(zlib.crc32(body, zlib.crc32(head)))


def decode_snapshot(content: bytes) -> ZnodeTree:
    """Build the tree from a snapshot file. Raises DamagedFileError."""
    if len(content) < _SNAPSHOT.size + _CRC.size or content[:4] != SNAPSHOT_MAGIC:
        raise DamagedFileError("the header is not that of a metadata snapshot")
    if _CRC.unpack_from(content, len(content) - _CRC.size)[0] != zlib.crc32(content[: -_CRC.size]):
        raise DamagedFileError("the content does not match its checksum")
    _, zxid, node_count, sequence_count, _ = _SNAPSHOT.unpack_from(content)
    reader = _Reader(content, _SNAPSHOT.size)
    nodes = [(reader.path(), reader.node()) for _ in range(node_count)]
    sequences = {reader.path(): int(reader.unpack(_NEXT)[0]) for _ in range(sequence_count)}
    return ZnodeTree.restored(zxid, nodes, sequences)


def _encode_operation(operation: Create | SetData | Delete, parts: list[bytes]) -> None:
    path = operation.path.encode()
    if isinstance(operation, Delete):
        parts += (_OPERATION.pack(_DELETE, len(path)), path, _DATA.pack(-1))
        return
    kind = _SET
    if isinstance(operation, Create):
        kind = _CREATE_KINDS[operation.ephemeral, operation.sequence]
    parts += (_OPERATION.pack(kind, len(path)), path)
    _encode_data(operation.data, parts)


def _encode_path(path: str, parts: list[bytes]) -> None:
    encoded = path.encode()
    parts += (_PATH.pack(len(encoded)), encoded)


def _encode_data(data: bytes | None, parts: list[bytes]) -> None:
    if data is None:
        parts.append(_DATA.pack(-1))
    else:
        parts += (_DATA.pack(len(data)), data)


def _payload_at(content: bytes, position: int) -> bytes | None:
    """Return the payload of the frame at `position`, or None if no whole frame is there."""
    if position + _FRAME.size > len(content):
        return None
    length, crc = _FRAME.unpack_from(content, position)
    start = position + _FRAME.size
    if length < _TRANSACTION.size or start + length > len(content):
        return None
    payload = content[start : start + length]
    return payload if zlib.crc32(payload) == crc else None


def _find_later_frame(content: bytes, position: int) -> int | None:
    """Return the position of a valid frame behind a bad one, or None.

    A tail is at most one group commit long, so trying each byte is cheap; a zero byte cannot be
    distinguished from a hole, and a frame longer than what is left is skipped without a checksum.
    """
    for candidate in range(position + 1, len(content) - _FRAME.size - _TRANSACTION.size + 1):
        if _payload_at(content, candidate) is not None:
            return candidate
    return None


def _decode_payload(payload: bytes) -> Iterator[Transaction]:
    reader = _Reader(payload, 0)
    while reader.position < len(payload):
        zxid, session, count = reader.unpack(_TRANSACTION)
        yield Transaction(zxid, session, tuple(reader.operation() for _ in range(count)))


class _Reader:
    """A cursor over bytes whose checksum was good."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self.position = position

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        values = form.unpack_from(self._content, self.position)
        self.position += form.size
        return values

    def take(self, length: int) -> bytes:
        start = self.position
        self.position += length
        return self._content[start : self.position]

    def path(self) -> str:
        return self.take(self.unpack(_PATH)[0]).decode()

    def data(self) -> bytes | None:
        length = self.unpack(_DATA)[0]
        return None if length < 0 else self.take(length)

    def node(self) -> Znode:
        data = self.data()
        version, czxid, mzxid, owner = self.unpack(_STAT)
        return Znode(data, version, czxid, mzxid, owner)

    def operation(self) -> Create | SetData | Delete:
        kind, length = self.unpack(_OPERATION)
        path = self.take(length).decode()
        data = self.data()
        if kind == _DELETE:
            return Delete(path)
        if kind == _SET:
            return SetData(path, data)
        ephemeral, sequence = _CREATE_FLAGS[kind]
        return Create(path, data, ephemeral, sequence)


def replay(tree: ZnodeTree, transactions: Iterable[Transaction]) -> int:
    """Apply transactions new to the tree; returns their number. Raises StoreError on conflicts."""
    count = 0
    for transaction in transactions:
        if transaction.zxid <= tree.zxid:
            continue
        tree.zxid = transaction.zxid - 1
        tree.apply([_plain(operation) for operation in transaction.operations], transaction.session)
        for operation in transaction.operations:
            if isinstance(operation, Create) and operation.sequence:
                number = int(operation.path[-_SEQUENCE_DIGITS:])
                tree.sequences[parent_of(operation.path)] = number + 1
        count += 1
    return count


def _plain(operation: Create | SetData | Delete) -> Create | SetData | Delete:
    """Return the operation without drawing a number: a sequential path is complete already."""
    if isinstance(operation, Create) and operation.sequence:
        return Create(operation.path, operation.data, operation.ephemeral)
    return operation
