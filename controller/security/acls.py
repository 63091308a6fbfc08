"""Access control lists in the metadata store: read at the start, written with notifications.

A change is a conditional write together with its notification, repeated on the result of a
concurrent write. (Apache Kafka's notification is a write of its own: a broker that dies before it
leaves a change that others see only when they start.) Every broker watches the notifications and
reads the lists that they name again; after its session has been interrupted it reads all of them.
So two brokers differ for as long as a notification travels, or as one of them is cut off from the
store, which it logs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from controller.brokers.dynamic_configs import KEPT_NOTIFICATIONS
from controller.metadata_store.flights import in_flights, read_many
from controller.metadata_store.store import (
    BadVersionError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    SetData,
    StoreError,
    Znode,
)
from controller.security.acl_znodes import (
    ACL_PATHS,
    CHANGE_PREFIX,
    CHANGES,
    PROTECTED,
    TREES,
    acl_path,
    decode_acl,
    decode_acl_change,
    encode_acl,
    encode_acl_change,
)
from controller.znodes import MalformedZnodeError
from protocol.acl_types import AccessControlEntry, PatternType, ResourcePattern

if TYPE_CHECKING:
    from controller.metadata_store.store import Change, MetadataStore, Operation
    from controller.ports import Slices

WRITE_ATTEMPTS = 11
"""Number of attempts of a conditional write, as in Apache Kafka's AclAuthorizer.

Fixed: each failure is another writer's success, and the client asks again."""

Entries = tuple[AccessControlEntry, ...]
Alteration = Callable[[Entries], Iterable[AccessControlEntry]]
"""Makes the new list from the present one; called again after a concurrent write."""

logger = logging.getLogger(__name__)

_CONCURRENT = (BadVersionError, NodeExistsError, NoNodeError)


class _Stored(NamedTuple):
    """A list, and the version of its node."""

    entries: Entries
    version: int


class _News(NamedTuple):
    """Contents of the new notifications below one node."""

    parent: str
    patterns: list[ResourcePattern]
    newest: str
    outdated: list[str]
    """Paths of those that every broker has read by now."""


class StoredAcls:
    """This broker's copy of all lists; one listener is called for each change."""

    def __init__(
        self,
        store: MetadataStore,
        slices: Callable[[], Slices],
        on_change: Callable[[ResourcePattern, Entries], None],
        on_notice: Callable[[], None],
    ) -> None:
        """`on_notice` is called on the loop when `refresh` should run."""
        self._store = store
        self._slices = slices
        self._on_change = on_change
        self._on_notice = on_notice
        self._known: dict[ResourcePattern, _Stored] = {}
        self._newest_seen: dict[str, str] = {}
        """The last notification that was read, by parent."""
        self._watched: set[str] = set()
        self._is_interrupted = True
        """True if all lists have to be read, since notifications may have been missed."""
        self._has_started = False
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Make the nodes that lists lie below, read all lists, and watch for changes.

        Raises MalformedZnodeError: a list that cannot be read may be one that denies.
        """
        await self._make_paths()
        await self.refresh()

    def interrupted(self) -> None:
        """Notifications may have been missed: the next `refresh` reads all lists."""
        self._is_interrupted = True
        self._on_notice()

    async def refresh(self) -> None:
        """Read the changes since the last time."""
        async with self._turn:
            news = [await self._news(parent) for parent in CHANGES.values()]
            if self._is_interrupted:
                if self._has_started:
                    logger.info("ACLs are read again: notifications may have been missed")
                await self._read_all()
            else:
                await self._read(dict.fromkeys(chain.from_iterable(one.patterns for one in news)))
            for one in news:
                self._newest_seen[one.parent] = one.newest
            await self._purge([path for one in news for path in one.outdated])

    async def alter(
        self, changes: Mapping[ResourcePattern, Alteration]
    ) -> dict[ResourcePattern, StoreError]:
        """Change lists, each by itself; returns the errors of those that could not be changed."""
        async with self._turn:
            return await self._alter(changes)

    async def _alter(
        self, changes: Mapping[ResourcePattern, Alteration]
    ) -> dict[ResourcePattern, StoreError]:
        errors: dict[ResourcePattern, StoreError] = {}
        left: Sequence[ResourcePattern] = list(changes)
        unread: Sequence[ResourcePattern] = [one for one in left if one not in self._known]
        for _ in range(WRITE_ATTEMPTS):
            try:
                await self._read(unread)
            except StoreError as error:  # earlier writes stay
                return errors | dict.fromkeys(left, error)
            news = await self._changed(left, changes)
            left = unread = await self._write(news, errors)
            if not left:
                break
        for pattern in left:
            errors[pattern] = StoreError(acl_path(pattern), "is being changed by others")
        return errors

    async def _changed(
        self, patterns: Iterable[ResourcePattern], changes: Mapping[ResourcePattern, Alteration]
    ) -> dict[ResourcePattern, Entries]:
        """Return the new lists of the patterns whose list is changed."""
        news: dict[ResourcePattern, Entries] = {}
        async for pattern in self._slices().each(patterns):
            present = self._entries(pattern)
            entries = tuple(dict.fromkeys(changes[pattern](present)))
            if entries != present:
                news[pattern] = entries
        return news

    async def _write(
        self, news: Mapping[ResourcePattern, Entries], errors: dict[ResourcePattern, StoreError]
    ) -> list[ResourcePattern]:
        """Write lists; returns those that others have changed meanwhile."""
        slices = self._slices()
        transactions = [
            self._transaction(pattern, new) async for pattern, new in slices.each(news.items())
        ]
        outcomes = await in_flights(transactions, self._store.multi_many, self._slices())
        outdated = []
        results = zip(news.items(), outcomes, strict=True)
        async for (pattern, entries), outcome in slices.each(results):
            if not isinstance(outcome, StoreError):
                written = outcome[0]
                version = written.version if isinstance(written, Znode) else 0
                self._keep(pattern, _Stored(entries, version) if entries else None)
                logger.info("ACLs of %s changed: %d entries", pattern, len(entries))
            elif isinstance(outcome, _CONCURRENT) and not outcome.operation:
                outdated.append(pattern)
            else:
                errors[pattern] = outcome
        return outdated

    def _transaction(self, pattern: ResourcePattern, entries: Entries) -> list[Operation]:
        path, known = acl_path(pattern), self._known.get(pattern)
        write: Operation
        if not entries:
            assert known is not None
            write = Delete(path, known.version)
        elif known is None:
            write = Create(path, encode_acl(entries))
        else:
            write = SetData(path, encode_acl(entries), known.version)
        parent = CHANGES[pattern.pattern_type]
        notification = encode_acl_change(pattern)
        return [write, Create(f"{parent}/{CHANGE_PREFIX}", notification, sequence=True)]

    def _entries(self, pattern: ResourcePattern) -> Entries:
        known = self._known.get(pattern)
        return () if known is None else known.entries

    def _keep(self, pattern: ResourcePattern, stored: _Stored | None) -> None:
        """Keep a list as it is in the store, or the fact that it has no node there."""
        before = self._entries(pattern)
        if stored is None:
            self._known.pop(pattern, None)
        else:
            self._known[pattern] = stored
        entries = self._entries(pattern)
        if entries != before:
            self._on_change(pattern, entries)

    async def _make_paths(self) -> None:
        nodes = await self._store.get_many(ACL_PATHS)
        missing = [path for path, node in zip(ACL_PATHS, nodes, strict=True) if node is None]
        for outcome in await self._store.multi_many([[Create(path)] for path in missing]):
            if isinstance(outcome, StoreError) and not isinstance(outcome, NodeExistsError):
                raise outcome

    async def _read_all(self) -> None:
        self._is_interrupted = False  # before reading: it may be interrupted meanwhile
        try:
            patterns = [one for kind in TREES for one in await self._patterns(kind)]
            await self._read(dict.fromkeys([*patterns, *self._known]))
        except BaseException:
            self._is_interrupted = True
            raise
        self._has_started = True

    async def _patterns(self, kind: PatternType) -> list[ResourcePattern]:
        found = []
        for name in await self._store.children(TREES[kind]):
            if name in PROTECTED:
                resources = await self._store.children(f"{TREES[kind]}/{name}")
                found += [ResourcePattern(PROTECTED[name], one, kind) for one in resources]
            else:
                logger.warning("ACLs ignored: %s/%s is no type of resource", TREES[kind], name)
        return found

    async def _read(self, patterns: Iterable[ResourcePattern]) -> None:
        listed = list(patterns)
        slices = self._slices()
        paths = [acl_path(pattern) async for pattern in slices.each(listed)]
        nodes = await read_many(self._store, paths, slices)
        results = zip(listed, paths, nodes, strict=True)
        async for pattern, path, node in self._slices().each(results):
            if node is None:
                self._keep(pattern, None)
                continue
            try:
                self._keep(pattern, _Stored(decode_acl(path, node.data), node.version))
            except MalformedZnodeError as error:
                if not self._has_started:
                    raise
                logger.error("ACLs of %s stay as they were: %s", pattern, error)  # noqa: TRY400

    async def _news(self, parent: str) -> _News:
        """Read the new notifications below a node, and watch for more."""
        names = await self._names(parent)
        seen = self._newest_seen.get(parent, "")
        slices = self._slices()
        paths = [f"{parent}/{name}" async for name in slices.each(names) if name > seen]
        if self._is_interrupted:  # all lists are read in any case
            paths = []
        patterns = []
        nodes = await read_many(self._store, paths, slices)
        async for path, node in slices.each(zip(paths, nodes, strict=True)):
            try:
                patterns += [] if node is None else [decode_acl_change(path, node.data)]
            except MalformedZnodeError as error:
                logger.error("ACL change ignored: %s", error)  # noqa: TRY400
        old = names[:-KEPT_NOTIFICATIONS]
        outdated = [f"{parent}/{name}" async for name in slices.each(old)]
        return _News(parent, patterns, max(names, default=seen), outdated)

    async def _names(self, parent: str) -> list[str]:
        if parent in self._watched:
            return await self._store.children(parent)
        self._watched.add(parent)  # before the answer, which a change may overtake
        try:
            return await self._store.children(parent, partial(self._noticed, parent))
        except BaseException:
            self._watched.discard(parent)
            raise

    def _noticed(self, parent: str, _: Change) -> None:
        self._watched.discard(parent)
        self._on_notice()

    async def _purge(self, paths: Sequence[str]) -> None:
        slices = self._slices()
        deletions: list[list[Operation]] = [[Delete(path)] async for path in slices.each(paths)]
        for outcome in await in_flights(deletions, self._store.multi_many, slices):
            if isinstance(outcome, StoreError):
                logger.debug("a notification was purged by another broker: %s", outcome)
