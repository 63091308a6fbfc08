"""The metadata store of a broker that runs without ZooKeeper: two files beside its logs.

A transaction changes the tree in memory at once, joins the group that waits for the disk, and is
acknowledged when one write and one sync have made its whole group durable; while that runs, later
transactions gather in the next group. So a thousand topics cost a handful of syncs. When the
journal has outgrown the tree, the same job writes a snapshot and starts a new journal.

If the disk refuses a group, its transactions and all later ones are undone in the tree and their
callers get StoreUnavailableError; acknowledged ones are kept, and the next write tries again. The
same holds for every other error: the waiting callers get it, and no later write waits for it.

There is one session, that of the process. Ephemeral nodes are journalled like all others, so that
transaction ids never repeat, and those of earlier sessions go when the store is opened.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from controller.metadata_store.journal import (
    HEADER_BYTES,
    DamagedFileError,
    decode_journal,
    decode_snapshot,
    encode_frame,
    encode_header,
    encode_snapshot,
    replay,
)
from controller.metadata_store.store import (
    Delete,
    Operation,
    Result,
    SessionExpiredError,
    StoreError,
    StoreUnavailableError,
    Znode,
)
from controller.metadata_store.tree import Applied, ZnodeTree
from controller.metadata_store.tree_store import TreeStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from controller.metadata_store.embedded_files import StoreFiles

JOURNAL_NAME = "embedded-metadata.journal"
SNAPSHOT_NAME = "embedded-metadata.snapshot"
SNAPSHOT_AFTER_BYTES = 4 * 1024 * 1024
"""A journal shorter than this is not replaced while the store is open."""
SNAPSHOT_AT_CLOSE_BYTES = 64 * 1024
"""A clean close replaces a journal longer than this: a snapshot loads faster than it replays."""

logger = logging.getLogger(__name__)

T = TypeVar("T")


class DamagedStoreError(Exception):
    """The store's files are damaged; they were left unchanged."""


@dataclass(slots=True)
class _Group:
    """Transactions that one sync makes durable together."""

    members: list[Applied] = field(default_factory=list)
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Image:
    """The tree after a group, for a snapshot that another thread writes."""

    zxid: int
    nodes: list[tuple[str, Znode]]
    sequences: list[tuple[str, int]]


class EmbeddedStore(TreeStore):
    """`MetadataStore` on a journal and a snapshot. Open it with `EmbeddedStore.open`."""

    def __init__(self, files: StoreFiles, loaded: _Loaded, executor: Executor | None) -> None:
        """Use `open`."""
        super().__init__(loaded.tree)
        self.recovery = loaded.recovery
        self._files = files
        self._executor = executor
        self._session_id = loaded.tree.zxid + 1
        self._journal_bytes = loaded.journal_bytes
        self._snapshot_bytes = loaded.snapshot_bytes
        self._new_journal: bytes | None = None
        """The journal that a failed replacement may have put in place."""
        self._gathering: _Group | None = None
        self._writing: _Group | None = None
        self._closed = False

    @classmethod
    async def open(cls, files: StoreFiles, executor: Executor | None = None) -> EmbeddedStore:
        """Load the files, cut a torn tail, end the sessions of earlier processes.

        Blocking work goes to `executor`; with None it is done in place, for tests and simulations.
        Raises DamagedStoreError, having changed nothing, if a file is damaged.
        """
        if executor is None:
            loaded = _load(files)
        else:
            loaded = await asyncio.get_running_loop().run_in_executor(executor, _load, files)
        store = cls(files, loaded, executor)
        for session, paths in store._tree.ephemerals().items():
            deepest_first = sorted(paths, reverse=True)
            store._submit([Delete(path) for path in deepest_first], session)
        try:
            await store._durable()
        except BaseException:
            with suppress(StoreError):
                await store.close()
            raise
        return store

    @property
    def session_id(self) -> int:
        """Owner of the ephemeral nodes of this process."""
        return self._session_id

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        """Do independent transactions in order; returns when they are durable."""
        outcomes: list[list[Result] | StoreError] = []
        for operations in transactions:
            try:
                outcomes.append(self._submit(operations, self._session_id).results)
            except StoreError as error:
                outcomes.append(error)
        try:
            await self._durable()
        except StoreUnavailableError as error:
            return [outcome if isinstance(outcome, StoreError) else error for outcome in outcomes]
        return outcomes

    async def close(self) -> None:
        """Remove the session's ephemeral nodes and close the files."""
        if self._closed:
            return
        paths = self._tree.ephemerals().get(self._session_id, [])
        try:
            if paths:
                self._submit([Delete(path) for path in reversed(paths)], self._session_id)
            self._closed = True
            await self._durable()
            if self._journal_bytes > SNAPSHOT_AT_CLOSE_BYTES:
                await self._run(self._replace_journal, self._image())
        finally:
            self._closed = True
            self._files.close()

    def _submit(self, operations: Sequence[Operation], session: int) -> Applied:
        if self._closed:
            raise SessionExpiredError("/", "the metadata store is closed")
        applied = self._tree.apply(operations, session)
        if applied.operations:
            if self._gathering is None:
                self._gathering = _Group()
                if self._writing is None:
                    asyncio.get_running_loop().call_soon(self._start_writing)
            self._gathering.members.append(applied)
        return applied

    async def _durable(self) -> None:
        """Wait until everything submitted so far is durable."""
        group = self._gathering or self._writing
        if group is None:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group.waiters.append(waiter)
        await waiter

    def _start_writing(self) -> None:
        group, self._gathering = self._gathering, None
        if group is None or self._writing is not None:
            return
        self._writing = group
        try:
            self._write_group(group)
        except Exception as error:  # noqa: BLE001 - told, and given to whoever waits
            self._finish_writing(group, error)

    def _write_group(self, group: _Group) -> None:
        """Have a group written; `_finish_writing` follows, unless this raises."""
        frame = encode_frame(group.members)
        limit = max(SNAPSHOT_AFTER_BYTES, 2 * self._snapshot_bytes)
        image = self._image() if self._journal_bytes + len(frame) > limit else None
        loop = asyncio.get_running_loop()
        if self._executor is None:
            outcome = self._write(frame, image)
            loop.call_soon(self._finish_writing, group, outcome)
            return
        job = loop.run_in_executor(self._executor, self._write, frame, image)
        job.add_done_callback(lambda done: self._finish_writing(group, _outcome(done)))

    async def _run(self, work: Callable[[_Image], None], image: _Image) -> None:
        if self._executor is None:
            work(image)
        else:
            await asyncio.get_running_loop().run_in_executor(self._executor, work, image)

    def _image(self) -> _Image:
        tree = self._tree
        return _Image(tree.zxid, list(tree.nodes.items()), list(tree.sequences.items()))

    def _write(self, frame: bytes, image: _Image | None) -> Exception | None:
        """Make a group durable. Runs in the executor; the next job starts after this one ended.

        Returns the error that kept the group from the journal, and never raises it. A snapshot that
        cannot be written is none.
        """
        try:
            self._find_journal_end()
            self._files.write_at(JOURNAL_NAME, self._journal_bytes, frame)
        except Exception as error:  # noqa: BLE001 - told, and given to whoever waits
            self._cut_failed_write()
            return error
        self._journal_bytes += len(frame)
        if image is not None:
            self._replace_journal(image)
        return None

    def _cut_failed_write(self) -> None:
        try:
            self._files.truncate(JOURNAL_NAME, self._journal_bytes)
        except Exception as error:
            logger.warning(
                "cannot cut %s after a failed write: %s",
                JOURNAL_NAME,
                error,
                exc_info=_unforeseen(error),
            )

    def _replace_journal(self, image: _Image) -> None:
        """Write a snapshot, then an empty journal. A crash in between leaves a longer replay."""
        try:
            snapshot = encode_snapshot(image.zxid, image.nodes, image.sequences)
            self._files.replace(SNAPSHOT_NAME, snapshot)
            self._snapshot_bytes = len(snapshot)
            self._new_journal = encode_header(image.zxid)
            self._files.replace(JOURNAL_NAME, self._new_journal)
            self._new_journal = None
            self._journal_bytes = HEADER_BYTES
        except Exception as error:
            logger.warning(
                "cannot write a metadata snapshot, the journal keeps growing: %s",
                error,
                exc_info=_unforeseen(error),
            )

    def _find_journal_end(self) -> None:
        """Find out whether a failed replacement has left the old journal or the new one.

        A frame appended behind the end of the other one would be lost at the next start.
        """
        if self._new_journal is not None:
            if self._files.read(JOURNAL_NAME) == self._new_journal:
                self._journal_bytes = HEADER_BYTES
            self._new_journal = None

    def _finish_writing(self, group: _Group, error: BaseException | None) -> None:
        self._writing = None
        following = self._gathering
        if error is None:
            self._acknowledge(group, None)
        else:
            self._gathering = None
            groups = [group] if following is None else [group, following]
            self._take_back(groups, error)
        if self._gathering is not None:
            self._start_writing()

    def _take_back(self, groups: list[_Group], error: BaseException) -> None:
        logger.error("cannot write %s: %s", JOURNAL_NAME, error, exc_info=_unforeseen(error))
        for group in groups:  # their callers get it once this has returned
            reason = f"the metadata store cannot be written: {error}"
            self._acknowledge(group, StoreUnavailableError("/", reason))
        for group in reversed(groups):
            for applied in reversed(group.members):
                self._tree.undo(applied)

    def _acknowledge(self, group: _Group, failure: StoreUnavailableError | None) -> None:
        loop = asyncio.get_running_loop()
        for applied in group.members:
            for watch, change in applied.notices:
                loop.call_soon(watch, change)
        for waiter in group.waiters:
            if waiter.done():
                continue
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)


def _outcome(job: asyncio.Future[Exception | None]) -> BaseException | None:
    """The error of a write job, also if it never ran."""
    if job.cancelled():
        return asyncio.CancelledError("the broker stops")
    return job.exception() or job.result()


def _unforeseen(error: BaseException) -> BaseException | None:
    """Return an error that is not the disk's, to be logged with its traceback."""
    return None if isinstance(error, OSError) else error


@dataclass(frozen=True, slots=True)
class Recovery:
    """The findings of opening the store, for the log at startup."""

    nodes: int
    replayed_transactions: int
    cut_bytes: int
    """Length of the torn tail that was cut, 0 if there was none."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    tree: ZnodeTree
    recovery: Recovery
    journal_bytes: int
    snapshot_bytes: int


def _load(files: StoreFiles) -> _Loaded:
    snapshot = files.read(SNAPSHOT_NAME)
    journal = files.read(JOURNAL_NAME)
    if journal is None:
        if snapshot is not None:
            raise DamagedStoreError(f"{JOURNAL_NAME} is missing although {SNAPSHOT_NAME} exists")
        journal = encode_header(0)
        files.replace(JOURNAL_NAME, journal)
    tree = ZnodeTree() if snapshot is None else _checked(SNAPSHOT_NAME, decode_snapshot, snapshot)
    content = _checked(JOURNAL_NAME, decode_journal, journal)
    if content.base_zxid > tree.zxid:
        raise DamagedStoreError(
            f"{JOURNAL_NAME} continues transaction {content.base_zxid}, "
            f"but {SNAPSHOT_NAME} ends at {tree.zxid}"
        )
    try:
        replayed = replay(tree, content.transactions)
    except StoreError as error:
        raise DamagedStoreError(f"{JOURNAL_NAME} does not fit {SNAPSHOT_NAME}: {error}") from error
    cut_bytes = len(journal) - content.valid_bytes
    if cut_bytes:
        logger.warning(
            "cut %d bytes of an unfinished write from %s at byte %d",
            cut_bytes,
            JOURNAL_NAME,
            content.valid_bytes,
        )
        files.truncate(JOURNAL_NAME, content.valid_bytes)
    recovery = Recovery(len(tree.nodes), replayed, cut_bytes)
    return _Loaded(tree, recovery, content.valid_bytes, len(snapshot or b""))


def _checked(name: str, decode: Callable[[bytes], T], content: bytes) -> T:
    try:
        return decode(content)
    except DamagedFileError as error:
        raise DamagedStoreError(f"{name} is damaged: {error}; nothing was changed") from error
