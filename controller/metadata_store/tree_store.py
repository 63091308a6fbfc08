"""The common part of stores with the whole tree in memory: reads and single writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.metadata_store.single_writes import SingleWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.metadata_store.store import Watch, Znode
    from controller.metadata_store.tree import ZnodeTree


class TreeStore(SingleWrites):
    """The reading half of `MetadataStore`, and single writes as transactions of one."""

    def __init__(self, tree: ZnodeTree) -> None:
        """Serve reads from `tree`."""
        self._tree = tree

    @property
    def newest_transaction(self) -> int:
        """Number of the newest transaction in the tree."""
        return self._tree.zxid

    def on_interruption(self, listener: Callable[[], None]) -> None:
        """Accept a listener that is never called: the tree is always reachable."""
        del listener

    @property
    def is_reachable(self) -> bool:
        """Always true."""
        return True

    async def wait_until_reachable(self) -> None:
        """Return at once."""
        return

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """Read a node and watch its data."""
        node = self._tree.get(path)
        if watch is not None:
            self._tree.watch_data(path, watch)
        return node

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read many nodes; None where there is none."""
        nodes = self._tree.nodes
        return [nodes.get(path) for path in paths]

    async def exists(self, path: str, watch: Watch | None = None) -> Znode | None:
        """Read a node that may be absent."""
        if watch is not None:
            self._tree.watch_data(path, watch)
        return self._tree.nodes.get(path)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Read the sorted names below a node."""
        names = self._tree.children(path)
        if watch is not None:
            self._tree.watch_children(path, watch)
        return names
