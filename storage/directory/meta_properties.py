"""`meta.properties`: which broker of which cluster a log directory belongs to.

Version 0, that of ZooKeeper mode, names the broker `broker.id`. Version 1, of a directory that a
KRaft broker formatted, names it `node.id`; such a file is honoured and left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from storage.checkpoint_file import decode_integer
from storage.errors import DamagedFileError, DirectoryRefusedError

BROKER_ID = "broker.id"
NODE_ID = "node.id"
CLUSTER_ID = "cluster.id"
VERSION = "version"
ID_KEYS = {"0": BROKER_ID, "1": NODE_ID}


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Identity of a directory; None where the file does not say."""

    broker_id: int | None = None
    cluster_id: str | None = None

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
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DamagedFileError("not a text file") from error
    pairs = {}
    for line in lines:
        if line.strip() and not line.startswith(("#", "!")):
            key, separator, value = line.partition("=")
            if not separator:
                raise DamagedFileError(f"not a key and a value: {line[:80]!r}")
            pairs[key.strip()] = value.strip().replace("\\", "")
    id_key = ID_KEYS.get(pairs.get(VERSION, ""))
    if id_key is None:
        raise DamagedFileError(f"version {pairs.get(VERSION)!r} is unknown")
    broker_id = pairs.get(id_key)
    number = None if broker_id is None else decode_integer(broker_id)
    return MetaProperties(number, pairs.get(CLUSTER_ID))


def encode(broker_id: int, cluster_id: str, now_ms: int) -> bytes:
    """Bytes of the file, as Java's Properties write them."""
    date = datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    lines = ["#", f"#{date}", f"{BROKER_ID}={broker_id}", f"{VERSION}=0"]
    return "\n".join([*lines, f"{CLUSTER_ID}={cluster_id}", ""]).encode()
