"""The metadata store port: a ZooKeeper-shaped tree of small nodes.

Paths are absolute and slash-separated. A node carries bytes (or nothing), a version that starts
at 0 and grows by one with each write, the transaction that made it (`czxid`) and the one that
last wrote it (`mzxid`). An ephemeral node goes when its owner's session goes.

`multi` is all or nothing. `multi_many` submits independent transactions back to back, so that
an adapter can send them in one flight and pay for durability once.

Watches are one-shot: a callback given to a read is called once, on the event loop, after the next
committed change; a watcher that wants more reads again with a new watch. An adapter may call a
watch without need (after a failure, say), never forget one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1
"""Write or delete unconditionally."""


class Znode(NamedTuple):
    """One node as a read returns it."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    ephemeral_owner: int = 0
    """Session that the node lives with, 0 for a persistent node."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; its parent must exist and be persistent."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequence: bool = False
    """Append the parent's counter, ten digits wide, to the path."""


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace the data of a node that exists."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node that has no children."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Check:
    """Let the transaction happen only if the node has exactly this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check
Result = str | Znode | None
"""The result of an operation: the path created, the node written, or nothing."""


class ChangeKind(Enum):
    """The change that a watch saw."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"
    SESSION = "session"
    """The session was lost or regained; the node may be unchanged."""


class Change(NamedTuple):
    """One notification to a watch."""

    kind: ChangeKind
    path: str


Watch = Callable[[Change], None]


class StoreError(Exception):
    """A transaction did not happen. `operation` is the index of the one that refused."""

    def __init__(self, path: str, reason: str, operation: int = 0) -> None:
        """With the path of the node, and the reason."""
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.operation = operation


class NoNodeError(StoreError):
    """The node, or the parent of a node to create, does not exist."""


class NodeExistsError(StoreError):
    """The node to create exists."""


class BadVersionError(StoreError):
    """The node has another version than the one expected."""


class NotEmptyError(StoreError):
    """The node to delete has children."""


class EphemeralParentError(StoreError):
    """An ephemeral node cannot have children."""


class TooLargeError(StoreError):
    """The transaction has more bytes than the store takes; it did not happen."""


class SessionExpiredError(StoreError):
    """The session has expired: its ephemeral nodes are removed, and it cannot write any more."""


class StoreUnavailableError(StoreError):
    """The store is unreachable or cannot write; the transaction did not happen."""


class OutcomeUnknownError(StoreError):
    """The connection broke during the transaction, which may have happened or not.

    Which of the two is settled once the store can be reached again.
    """


class MetadataStore(Protocol):
    """The port of the controller and the broker to ZooKeeper, or the embedded store."""

    @property
    def session_id(self) -> int:
        """Owner of the ephemeral nodes that this client makes; never 0."""

    @property
    def newest_transaction(self) -> int:
        """Number of the newest transaction that this client has seen."""

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Call `listener` when cached knowledge of the store is invalid.

        That is: the session is new, and its ephemeral nodes are yet to be made, or a transaction of
        the old connection has an unknown outcome. The listener is called when the store can be
        reached again, before any watch is.
        """

    @property
    def is_reachable(self) -> bool:
        """True if the store can be reached now, as far as is known. Safe on any thread."""

    async def wait_until_reachable(self) -> None:
        """Return once the store is reachable, which may be at once.

        Raises SessionExpiredError if the store is closed.
        """

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """Read a node and watch its data. Raises NoNodeError."""

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many nodes in one flight; None where there is none."""

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        """Read a node that may be absent; the watch also sees its creation."""

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Names below a node, sorted; the watch sees children change. Raises NoNodeError."""

    async def create(
        self, path: str, data: bytes | None, *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Make one node; returns its path, which differs from the asked one if sequential."""

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Znode:
        """Write one node; returns it as written."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove one node."""

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all operations or none. Returns when they are durable."""

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do independent transactions in order; a refused one does not stop the rest."""

    async def close(self) -> None:
        """End the session: its ephemeral nodes go."""
