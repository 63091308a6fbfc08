"""Nodes that brokers and tools write for the controller, which acts on them and removes them.

Brokers announce failed log directories, and those of an inter-broker protocol before 2.7 the
in-sync sets that they have stored themselves. Tools older than KIP-455 and KIP-460 write nodes with
the partitions to move, or to elect preferred leaders for.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from controller.admin_znodes import (
    PREFERRED_ELECTION,
    REASSIGNMENT,
    decode_partitions,
    decode_reassignment,
    encode_reassignment,
)
from controller.brokers.log_dir_events import announcing_broker
from controller.cluster_state import load_states
from controller.metadata_store.store import (
    BadVersionError,
    Delete,
    NoNodeError,
    SetData,
    StoreError,
    StoreUnavailableError,
)
from controller.partitions.leader_balance import ElectionType, elect_leaders
from controller.partitions.replica_failures import ask_again
from controller.znodes import (
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    MalformedZnodeError,
)
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from controller.active_controller import ActiveController
    from controller.context import TopicPartition
    from controller.metadata_store.store import MetadataStore, Watch, Znode
    from controller.znodes import Replicas

    Handler = Callable[[], Awaitable[None]]

T = TypeVar("T")

_WRITTEN_BY_OTHERS = (NoNodeError, BadVersionError)
"""Another writer was faster: a watch shows the present state."""

logger = logging.getLogger(__name__)


class ZnodeNotifications:
    """Handlers by the name of their event; each reads the nodes, and watches for more."""

    def __init__(
        self,
        store: MetadataStore,
        watch: Callable[[str, Handler], Watch],
        active: Callable[[], ActiveController | None],
    ) -> None:
        """`watch(name, handler)` makes a watch that queues the event."""
        self._store = store
        self._watch = watch
        self._active = active
        self._begun: dict[TopicPartition, Replicas] = {}
        """Moves in the node that have begun: one that is cancelled is not begun again."""
        self.handlers: dict[str, Handler] = {
            "log dirs": self._on_log_dirs,
            "in-sync sets": self._on_in_sync_sets,
            "written elections": self._on_elections,
            "written moves": self.on_moves,
        }

    async def _on_log_dirs(self) -> None:
        """Find out which replicas brokers have lost.

        Announcements are removed last, and under the fence of the term: a controller that fails
        before that, or is deposed, leaves them to be acted on again. Apache Kafka's removes them
        even if it failed.
        """
        active = self._active()
        if active is None:
            return
        watch = self._watch("log dirs", self._on_log_dirs)
        listed = await self._list(LOG_DIR_EVENTS, watch)
        if not listed:
            return
        brokers = {_read(path, node, announcing_broker) for path, node in listed.items()}
        await ask_again(active, {one for one in brokers if one is not None})
        await active.send()
        await _strike_out(active, [Delete(path) for path in listed])

    async def _on_in_sync_sets(self) -> None:
        """Publish in-sync sets that leaders have stored (ZooKeeper before AlterPartition)."""
        active = self._active()
        if active is None:
            return
        watch = self._watch("in-sync sets", self._on_in_sync_sets)
        listed = await self._list(ISR_CHANGES, watch)
        if not listed:
            return
        changed: dict[TopicPartition, None] = {}
        for path, node in listed.items():
            changed |= dict.fromkeys(_read(path, node, decode_partitions) or ())
        known = [at for at in changed if at in active.context.leadership]
        await load_states(self._store, active.context, known, active.slices())
        await active.publish(known)
        await active.send()
        await _strike_out(active, [Delete(path) for path in listed])

    async def _list(self, parent: str, watch: Watch) -> dict[str, Znode]:
        """The children of a node with their data, by path and in order; watches for new ones."""
        paths = [f"{parent}/{name}" for name in await self._store.children(parent, watch)]
        nodes = await self._store.get_many(paths)
        return {path: node for path, node in zip(paths, nodes, strict=True) if node is not None}

    async def _on_elections(self) -> None:
        active = self._active()
        if active is None:
            return
        watch = self._watch("written elections", self._on_elections)
        node = await self._store.exists(PREFERRED_ELECTION, watch)
        if node is None:
            return
        partitions = _read(PREFERRED_ELECTION, node, decode_partitions) or []
        await elect_leaders(active, partitions, ElectionType.PREFERRED)
        await active.send()
        await _strike_out(active, [Delete(PREFERRED_ELECTION)])

    async def on_moves(self) -> None:
        """Begin the moves in the node, and remove those that are complete."""
        active = self._active()
        if active is None:
            return
        node = await self._store.exists(REASSIGNMENT, self._watch("written moves", self.on_moves))
        if node is None:
            self._begun.clear()
            return
        written = _read(REASSIGNMENT, node, decode_reassignment) or {}
        left = {at: target for at, target in written.items() if await self._go_on(at, target)}
        await active.send()
        if left != written or not left:
            await self._replace(active, left, node.version)

    async def _go_on(self, at: TopicPartition, target: Replicas) -> bool:
        """Begin a move if need be; returns whether it is in progress."""
        active = self._active()
        assert active is not None
        move = active.context.reassigning.get(at)
        if move is not None and move.target == target:
            self._begun[at] = target
            return True
        if self._begun.get(at) == target or active.context.replicas_of(at) == target:
            return False
        self._begun[at] = target
        try:
            await active.reassignments.alter(at, target)
        except ApiError as error:
            logger.warning("%s-%d cannot move, as %s wants it: %s", *at, REASSIGNMENT, error)
        return at in active.context.reassigning

    async def _replace(
        self, active: ActiveController, left: Mapping[TopicPartition, Replicas], version: int
    ) -> None:
        """Leave only these; after a concurrent write the watch fires."""
        self._begun = {at: self._begun[at] for at in left}
        change = SetData(REASSIGNMENT, encode_reassignment(left), version)
        await _strike_out(active, [change if left else Delete(REASSIGNMENT, version)])


async def _strike_out(active: ActiveController, changes: Sequence[Delete | SetData]) -> None:
    """Remove completed nodes. Raises StoreUnavailableError if it has to be retried."""
    for outcome in await active.store.write_many([[change] for change in changes]):
        if isinstance(outcome, StoreUnavailableError):
            raise outcome
        if isinstance(outcome, StoreError) and not isinstance(outcome, _WRITTEN_BY_OTHERS):
            logger.warning("cannot be removed: %s", outcome)


def _read(path: str, node: Znode, decode: Callable[[str, bytes | None], T]) -> T | None:
    try:
        return decode(path, node.data)
    except MalformedZnodeError as error:
        logger.warning("ignored: %s", error)
        return None
