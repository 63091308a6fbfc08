"""`meta.properties`: which node of which cluster a log directory belongs to.

Version 0, that of ZooKeeper mode, names the broker `broker.id`. Version 1, of a directory that was
formatted for a Raft quorum, names it `node.id`, and gives the directory an id of its own (KIP-858).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from config import properties
from protocol.uuids import from_base64, to_base64
from storage.checkpoint_file import decode_integer
from storage.errors import DamagedFileError, DirectoryRefusedError

if TYPE_CHECKING:
    from uuid import UUID

BROKER_ID: Final = "broker.id"
NODE_ID: Final = "node.id"
CLUSTER_ID: Final = "cluster.id"
DIRECTORY_ID: Final = "directory.id"
VERSION: Final = "version"
FORMATTED: Final = 1
"""The version of directories that were formatted."""
ID_KEYS: Final = {"0": BROKER_ID, "1": NODE_ID}

_ESCAPES: Final = {character: f"\\{character}" for character in "\\=:#!"} | {
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\f": "\\f",
}
_ESCAPED: Final = str.maketrans(_ESCAPES)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Identity of a directory; None where the file does not say."""

    broker_id: int | None = None
    cluster_id: str | None = None
    directory_id: UUID | None = None
    version: int = 0

    @property
    def pairs(self) -> dict[str, str]:
        """Keys and values of the file."""
        stated = {
            ID_KEYS[str(self.version)]: None if self.broker_id is None else str(self.broker_id),
            DIRECTORY_ID: None if self.directory_id is None else to_base64(self.directory_id),
            VERSION: str(self.version),
            CLUSTER_ID: self.cluster_id,
        }
        return {key: value for key, value in stated.items() if value is not None}

    def require(self, broker_id: int, cluster_id: str) -> None:
        """Raise DirectoryRefusedError unless it is this broker's, or says nothing."""
        if self.broker_id is not None and self.broker_id != broker_id:
            raise DirectoryRefusedError(
                f"broker.id is {broker_id}, but meta.properties in the log directories says "
                f"{self.broker_id}; set broker.id={self.broker_id} or use other log.dirs"
            )
        if self.cluster_id is not None and self.cluster_id != cluster_id:
            raise DirectoryRefusedError(
                f"the cluster id is {cluster_id}, but meta.properties in the log directories says "
                f"{self.cluster_id}; this broker's data belongs to another cluster"
            )

    def joined(self, found: MetaProperties, path: str) -> MetaProperties:
        """Merge of this and `found` at `path`; DirectoryRefusedError if they disagree."""
        for name in ("broker_id", "cluster_id"):
            ours, theirs = getattr(self, name), getattr(found, name)
            if None not in (ours, theirs) and ours != theirs:
                raise DirectoryRefusedError(
                    f"{path} says {name.replace('_', '.')}={theirs}, another directory says {ours}"
                )
        return MetaProperties(
            found.broker_id if self.broker_id is None else self.broker_id,
            self.cluster_id or found.cluster_id,
        )


def decode(data: bytes) -> MetaProperties:
    """Content of the file; DamagedFileError when it is none."""
    try:
        entries = properties.load(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DamagedFileError("not a text file") from error
    except properties.MalformedFileError as error:
        raise DamagedFileError(str(error)) from error
    pairs = {entry.name: entry.value.strip() for entry in entries}
    version = pairs.get(VERSION, "")
    id_key = ID_KEYS.get(version)
    if id_key is None:
        raise DamagedFileError(f"version {pairs.get(VERSION)!r} is unknown")
    broker_id, cluster_id = pairs.get(id_key), pairs.get(CLUSTER_ID)
    if int(version) == FORMATTED and (broker_id is None or cluster_id is None):
        raise DamagedFileError(f"{NODE_ID if broker_id is None else CLUSTER_ID} is missing")
    return MetaProperties(
        None if broker_id is None else decode_integer(broker_id),
        cluster_id,
        _directory_id(pairs.get(DIRECTORY_ID)),
        int(version),
    )


def encode(content: MetaProperties, now_ms: int) -> bytes:
    """Bytes of the file, as Java's Properties write them."""
    date = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    lines = [f"{key}={_escaped(value)}" for key, value in content.pairs.items()]
    return "\n".join(["#", f"#{date}", *lines, ""]).encode()


def _directory_id(text: str | None) -> UUID | None:
    if text is None:
        return None
    try:
        return from_base64(text)
    except ValueError as error:
        raise DamagedFileError(f"{DIRECTORY_ID} is {error}") from error


def _escaped(value: str) -> str:
    text = value.translate(_ESCAPED)
    return f"\\{text}" if text.startswith(" ") else text
