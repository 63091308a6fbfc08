"""`partition.metadata`: the id of the topic that a partition's directory belongs to (KIP-516)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from protocol.uuids import from_base64, to_base64
from storage.errors import DamagedFileError
from storage.segment import file_names

if TYPE_CHECKING:
    from uuid import UUID

    from storage.filesystem import FileSystem

VERSION: Final = "version"
TOPIC_ID: Final = "topic_id"


def encode(topic_id: UUID) -> bytes:
    """Bytes of the file: two lines, the last without an end."""
    return f"{VERSION}: 0\n{TOPIC_ID}: {to_base64(topic_id)}".encode()


@lru_cache(maxsize=16)
def decode(data: bytes) -> UUID:
    """Topic id in the file; DamagedFileError when it holds none.

    The same object for the partitions of a topic, which are loaded one after the other.
    """
    try:
        pairs = dict(line.split(": ", 1) for line in data.decode("utf-8-sig").splitlines() if line)
        if pairs[VERSION] != "0":
            raise DamagedFileError(f"{file_names.PARTITION_METADATA}: version {pairs[VERSION]}")
        return from_base64(pairs[TOPIC_ID])
    except (KeyError, ValueError) as error:
        raise DamagedFileError(f"{file_names.PARTITION_METADATA}: holds no topic id") from error


def read(filesystem: FileSystem, directory: str) -> UUID | None:
    """Topic id of a partition's directory; None when it has no such file (before 2.8)."""
    try:
        data = filesystem.read(f"{directory}/{file_names.PARTITION_METADATA}")
    except FileNotFoundError:
        return None
    return decode(data)


def write(filesystem: FileSystem, directory: str, topic_id: UUID) -> None:
    """Create the file."""
    path = f"{directory}/{file_names.PARTITION_METADATA}"
    filesystem.replace(path, encode(topic_id), sync=False)
