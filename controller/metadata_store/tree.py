"""The znode tree in memory: transactions, sessions, watches. Pure.

The embedded store is built on it. A node is an immutable `Znode`, so a shallow copy of the
dictionary is a consistent snapshot that another thread may write out. `apply` changes the tree at
once and returns an `Applied` from which the same transaction can be taken back: an adapter that
fails to make it durable undoes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controller.metadata_store.store import (
    ANY_VERSION,
    BadVersionError,
    Change,
    ChangeKind,
    Create,
    Delete,
    EphemeralParentError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Result,
    SetData,
    StoreError,
    TooLargeError,
    Watch,
    Znode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = "/"
LONGEST_PATH_BYTES: Final = 60_000
"""Clients name nodes: users, groups. The journal can write 65,535 bytes, sequence included."""
SHOWN_OF_PATH: Final = 100


@dataclass(slots=True)
class Applied:
    """The effects of one transaction."""

    zxid: int
    session: int
    operations: list[Create | SetData | Delete] = field(default_factory=list)
    """The changes alone, with sequence numbers filled into the paths."""
    results: list[Result] = field(default_factory=list)
    notices: list[tuple[Watch, Change]] = field(default_factory=list)
    """Watches taken off the tree, to be called once the transaction is durable."""
    undo: list[tuple[str, Znode | None]] = field(default_factory=list)
    """The changed paths with their former nodes, oldest first."""


class ZnodeTree:
    """All nodes, the sequence counters of parents, and the watches."""

    def __init__(self) -> None:
        """Start with the root alone."""
        self.zxid = 0
        self.nodes: dict[str, Znode] = {ROOT: Znode(None, 0, 0, 0)}
        self.sequences: dict[str, int] = {}
        """Next sequence number below a path."""
        self._children: dict[str, str | set[str]] = {}
        """A single name is not in a set: each partition's node has one child, and sets are large.
        """
        self._ephemerals: dict[int, set[str]] = {}
        self._data_watches: dict[str, list[Watch]] = {}
        self._child_watches: dict[str, list[Watch]] = {}

    @classmethod
    def restored(
        cls, zxid: int, nodes: Iterable[tuple[str, Znode]], sequences: dict[str, int]
    ) -> ZnodeTree:
        """Build a tree from a snapshot; parents may come after their children."""
        tree = cls()
        tree.zxid = zxid
        tree.sequences = sequences
        for path, node in nodes:
            tree._put(path, node)
        return tree

    # Reads

    def get(self, path: str) -> Znode:
        """Return the node or raise NoNodeError."""
        node = self.nodes.get(path)
        if node is None:
            raise NoNodeError(path, "no such node")
        return node

    def children(self, path: str) -> list[str]:
        """Return the sorted names below a node or raise NoNodeError."""
        self.get(path)
        names = self._children.get(path, ())
        return [names] if isinstance(names, str) else sorted(names)

    def ephemerals(self) -> dict[int, list[str]]:
        """Return the ephemeral paths of every session that has any."""
        return {session: sorted(paths) for session, paths in self._ephemerals.items() if paths}

    def watch_data(self, path: str, watch: Watch) -> None:
        """Call `watch` at the next creation, change or deletion of the path."""
        self._data_watches.setdefault(path, []).append(watch)

    def watch_children(self, path: str, watch: Watch) -> None:
        """Call `watch` when a child is added or removed, or the node itself is deleted."""
        self._child_watches.setdefault(path, []).append(watch)

    # Writes

    def apply(self, operations: Sequence[Operation], session: int) -> Applied:
        """Do all operations or raise the StoreError of the first that cannot be done."""
        applied = Applied(self.zxid + 1, session)
        for index, operation in enumerate(operations):
            try:
                applied.results.append(self._do(operation, applied))
            except StoreError as error:
                error.operation = index
                self._restore(applied)
                raise
        self.zxid = applied.zxid
        for change in applied.operations:
            self._take_notices(change, applied)
        return applied

    def undo(self, applied: Applied) -> None:
        """Take back the newest transaction. Sequence numbers and zxids are not used again."""
        self._restore(applied)

    def _restore(self, applied: Applied) -> None:
        for path, before in reversed(applied.undo):
            if path in self.nodes:
                self._drop(path)
            if before is not None:
                self._put(path, before)

    def _do(self, operation: Operation, applied: Applied) -> Result:
        if isinstance(operation, SetData):
            return self._set(operation, applied)
        if isinstance(operation, Create):
            return self._create(operation, applied)
        if isinstance(operation, Delete):
            self._delete(operation, applied)
        else:
            self._expect(operation.path, operation.version)
        return None

    def _create(self, operation: Create, applied: Applied) -> str:
        path = operation.path
        if len(path.encode()) > LONGEST_PATH_BYTES:
            reason = f"a path has more than {LONGEST_PATH_BYTES} bytes"
            raise TooLargeError(path[:SHOWN_OF_PATH], reason)
        parent = parent_of(path)
        above = self.nodes.get(parent)
        if above is None:
            raise NoNodeError(path, "its parent does not exist")
        if above.ephemeral_owner:
            raise EphemeralParentError(path, "its parent is ephemeral")
        if operation.sequence:
            path = f"{path}{self.sequences.get(parent, 0):010d}"
        if path in self.nodes:
            raise NodeExistsError(path, "the node exists")
        if operation.sequence:
            self.sequences[parent] = self.sequences.get(parent, 0) + 1
        owner = applied.session if operation.ephemeral else 0
        self._put(path, Znode(operation.data, 0, applied.zxid, applied.zxid, owner))
        applied.undo.append((path, None))
        applied.operations.append(
            Create(path, operation.data, operation.ephemeral, operation.sequence)
        )
        return path

    def _set(self, operation: SetData, applied: Applied) -> Znode:
        path = operation.path
        old = self._expect(path, operation.version)
        new = Znode(operation.data, old.version + 1, old.czxid, applied.zxid, old.ephemeral_owner)
        self.nodes[path] = new
        applied.undo.append((path, old))
        applied.operations.append(SetData(path, operation.data))
        return new

    def _delete(self, operation: Delete, applied: Applied) -> None:
        path = operation.path
        old = self._expect(path, operation.version)
        if self._children.get(path):
            raise NotEmptyError(path, "the node has children")
        self._drop(path)
        applied.undo.append((path, old))
        applied.operations.append(Delete(path))

    def _expect(self, path: str, version: int) -> Znode:
        node = self.get(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path, f"version is {node.version}, not {version}")
        return node

    def _put(self, path: str, node: Znode) -> None:
        self.nodes[path] = node
        if path != ROOT:
            parent, _, name = path.rpartition("/")
            siblings = self._children.setdefault(parent or ROOT, name)
            if isinstance(siblings, set):
                siblings.add(name)
            elif siblings != name:
                self._children[parent or ROOT] = {siblings, name}
        if node.ephemeral_owner:
            self._ephemerals.setdefault(node.ephemeral_owner, set()).add(path)

    def _drop(self, path: str) -> None:
        node = self.nodes.pop(path)
        parent, _, name = path.rpartition("/")
        siblings = self._children[parent or ROOT]
        if isinstance(siblings, set):
            siblings.discard(name)
        if not siblings or siblings == name:
            del self._children[parent or ROOT]
        if node.ephemeral_owner:
            self._ephemerals[node.ephemeral_owner].discard(path)

    def _take_notices(self, operation: Create | SetData | Delete, applied: Applied) -> None:
        path = operation.path
        kind = _KINDS[type(operation)]
        for watch in self._data_watches.pop(path, ()):
            applied.notices.append((watch, Change(kind, path)))
        if kind is ChangeKind.CHANGED:
            return
        if kind is ChangeKind.DELETED:
            for watch in self._child_watches.pop(path, ()):
                applied.notices.append((watch, Change(kind, path)))
        parent = parent_of(path)
        for watch in self._child_watches.pop(parent, ()):
            applied.notices.append((watch, Change(ChangeKind.CHILDREN, parent)))


_KINDS: dict[type, ChangeKind] = {
    Create: ChangeKind.CREATED,
    SetData: ChangeKind.CHANGED,
    Delete: ChangeKind.DELETED,
}


def parent_of(path: str) -> str:
    """Return the path one level up; the root for a top-level node."""
    return path.rpartition("/")[0] or ROOT
