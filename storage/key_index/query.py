"""The criteria of a look-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from storage.key_index.key_hashes import ID_HEADER, id_hash, key_hash

if TYPE_CHECKING:
    from protocol.records.record import Record

EARLIEST: Final = -(1 << 63)
LATEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Query:
    """Records with this key, or this id, or both."""

    key: bytes | None
    message_id: bytes | None
    """Value of their header `message-id`."""
    from_ms: int = EARLIEST
    to_ms: int = LATEST
    """Inclusive, as `from_ms` is."""

    @property
    def needle(self) -> bytes:
        """Bytes that each such record holds, somewhere."""
        if self.message_id is not None:
            return self.message_id
        assert self.key is not None, "nothing is looked for"
        return self.key

    @property
    def hash(self) -> int:
        """Hash to look up in an index: that of the id, if there are both, as the rarer one."""
        return key_hash(self.needle) if self.message_id is None else id_hash(self.message_id)

    def matches(self, record: Record) -> bool:
        """Return whether a record meets the criteria."""
        if self.key is not None and record.key != self.key:
            return False
        if self.message_id is not None and (ID_HEADER, self.message_id) not in record.headers:
            return False
        return self.from_ms <= record.timestamp <= self.to_ms
