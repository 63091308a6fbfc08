"""What others write into the tree for the controller to find, take up and remove.

Brokers announce failed log directories, and those of an inter-broker protocol before 2.7 the
in-sync sets that they have stored themselves. Tools older than the requests for it (KIP-455,
KIP-460) write down which partitions shall move, or go back to their preferred leaders.
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
"""Somebody else was faster: what there is now, a watch tells."""

logger = logging.getLogger(__name__)


class ZnodeNotifications:
    """Handlers by the name of their event; each reads what there is, and watches for more."""

    def __init__(
        self,
        store: MetadataStore,
        watch: Callable[[str, Handler], Watch],
        active: Callable[[], ActiveController | None],
    ) -> None:
        """`watch(name, handler)` makes a watch that has the event handled in its turn."""
        self._store = store
        self._watch = watch
        self._active = active
        self._begun: dict[TopicPartition, Replicas] = {}
        """Moves that were written down and have begun: one that is called off is not begun anew."""
        self.handlers: dict[str, Handler] = {
            "log dirs": self._on_log_dirs,
            "in-sync sets": self._on_in_sync_sets,
            "written elections": self._on_elections,
            "written moves": self.on_moves,
        }

    async def _on_log_dirs(self) -> None:
        """Ask brokers which replicas they lost.

        Announcements go last, and under the fence of the term: whoever fails before, or is deposed,
        leaves them to be acted on again. Apache Kafka's controller removes them even if it failed.
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
        """Leaders have stored in-sync sets: tell all brokers (ZooKeeper before AlterPartition)."""
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
        """What there is below a node, by path and in order; the watch sees more come."""
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
        """Begin the moves that are written down, and strike out those that are over."""
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
        """Whether a move is under way now, having begun it if it had not."""
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
        """Leave only these; when somebody else has written meanwhile, the watch tells of it."""
        self._begun = {at: self._begun[at] for at in left}
        change = SetData(REASSIGNMENT, encode_reassignment(left), version)
        await _strike_out(active, [change if left else Delete(REASSIGNMENT, version)])


async def _strike_out(active: ActiveController, changes: Sequence[Delete | SetData]) -> None:
    """Remove what is done. Raises StoreUnavailableError if it must be tried again."""
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
