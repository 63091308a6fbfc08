"""The `.keyindex` of a segment: from the hash of a key to the blocks with such records.

A block is some batches that follow each other in the `.log` file, 16 KB of them, or one batch that
is larger. An entry names a block with a record of a certain hash: a frequent key has one entry per
block. Entries lie in parts of the index, each for a run of blocks, and in a part in buckets by the
lowest bits of the hash, so that a look-up reads three or four pages per part:

    page 0      what segment it is of, whether it is of these very bytes; where the rest is
    parts       for each of them: entries, one bucket after the other; where each bucket begins
    part table  for each part: its blocks, how many buckets, where they are
    blocks      for each: where it begins, and between what timestamps its records lie

    wide entry     |16 bits of the hash |16 bits: block, counted from the first of its part|
    narrow entry   |6 bits of the hash  |10 bits: block|

Of 1 KB records wide entries take 0.4 % of the log, and hardly any leads to a block in vain. Of many
small records they would take more than 2 %; a part of those has narrow entries, which take half as
much and lead to a block in vain for every second part.

All numbers are little-endian, and the whole is in checked pages (`checked_pages`).

The index is tied to its log by the size of the `.log` file, and by the 61 bytes before the records
of four batches in it, the first and the last among them, each with the checksum of its batch. A log
that was truncated and rewritten, compacted, or replaced differs in one of these.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from protocol.records.batch import HEADER_BYTES
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from storage.filesystem import File

MAGIC: Final = b"keyidx\x00\x01"
WITNESSES: Final = 4
HEADER: Final = Struct("<8sqqqIIQQ" + "II" * WITNESSES)
PART: Final = Struct("<IIIIIIQQ")
BLOCK: Final = Struct("<Iqq")
UNKNOWN_TIME: Final = -(1 << 63)
"""As the least timestamp of a block in which a record may be older than the first of its batch."""


class Layout(NamedTuple):
    """Layout of the entries of a part."""

    type_code: str
    """Of `array.array`."""
    entry_bytes: int
    block_bits: int
    entries_per_bucket: int
    """On the average."""

    @property
    def blocks(self) -> int:
        """Maximum number of blocks of a part."""
        return 1 << self.block_bits

    @property
    def shift(self) -> int:
        """Right shift of a hash that leaves the bits stored in the entry."""
        return 32 - (8 * self.entry_bytes - self.block_bits)


WIDE: Final = Layout("I", 4, 16, 256)
NARROW: Final = Layout("H", 2, 10, 32)
LAYOUTS: Final = {layout.entry_bytes: layout for layout in (WIDE, NARROW)}


class Witness(NamedTuple):
    """A batch of the log by which its index knows it again."""

    position: int
    checksum: int
    """Of its header."""

    @classmethod
    def at(cls, log: File, position: int) -> Witness:
        """Witness of the current bytes at `position`."""
        return cls(position, crc32(log.read_at(position, HEADER_BYTES)))


class IndexHeader(NamedTuple):
    """Contents of page 0."""

    base_offset: int
    log_size: int
    entries: int
    parts: int
    blocks: int
    parts_position: int
    blocks_position: int
    witnesses: tuple[Witness, ...]

    def encode(self) -> bytes:
        """As `decode` reads it."""
        numbers = [number for witness in self.witnesses for number in witness]
        return HEADER.pack(MAGIC, *self[:-1], *numbers)

    @classmethod
    def decode(cls, data: bytes, path: str) -> IndexHeader:
        """Raises DamagedFileError when it is of another format."""
        magic, *fields = HEADER.unpack(data)
        if magic != MAGIC:
            raise DamagedFileError(f"{path}: {magic!r} begins no key index that is known here")
        numbers = fields[-2 * WITNESSES :]
        witnesses = tuple(Witness(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))
        return cls._make((*fields[: -2 * WITNESSES], witnesses))


class PartRow(NamedTuple):
    """Row of the part table."""

    first_block: int
    blocks: int
    entry_bytes: int
    bucket_bits: int
    entries: int
    reserved: int
    buckets_position: int
    """Position of the entry count before each bucket, followed by the total."""
    entries_position: int


class BlockRow(NamedTuple):
    """Row of the block table."""

    position: int
    """In the log; it ends where the next one begins."""
    least_timestamp: int
    greatest_timestamp: int
