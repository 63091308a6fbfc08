"""The embedded store across crashes, full disks and damaged files."""

from __future__ import annotations

import asyncio
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.metadata_store import embedded_store
from controller.metadata_store.embedded_files import LocalStoreFiles
from controller.metadata_store.embedded_store import (
    JOURNAL_NAME,
    SNAPSHOT_NAME,
    DamagedStoreError,
    EmbeddedStore,
)
from controller.metadata_store.store import (
    Create,
    Delete,
    Operation,
    SetData,
    StoreError,
    StoreUnavailableError,
    TooLargeError,
)
from tests.controller.volatile_files import VolatileFiles

State = dict[str, tuple[bytes | None, int]]

_paths = st.sampled_from(["/a", "/b", "/c", "/a/x", "/a/y", "/b/z"])
_data = st.none() | st.binary(max_size=20)
_operations = st.one_of(
    st.builds(Create, _paths, _data),
    st.builds(Create, st.just("/a/s_"), _data, st.just(False), st.just(True)),
    st.builds(SetData, _paths, _data),
    st.builds(Delete, _paths),
)
_transactions = st.lists(st.lists(_operations, min_size=1, max_size=4), max_size=12)


async def _state(store: EmbeddedStore) -> State:
    state: State = {}
    pending = ["/"]
    while pending:
        path = pending.pop()
        node = await store.get(path)
        state[path] = (node.data, node.version)
        prefix = "" if path == "/" else path
        pending += [f"{prefix}/{name}" for name in await store.children(path)]
    return state


@given(transactions=_transactions, tear=st.floats(0, 1), rot=st.integers(0, 255))
@settings(max_examples=150, deadline=None)
def test_crash_at_any_byte_keeps_a_prefix_with_all_acknowledged(
    transactions: list[list[Operation]], tear: float, rot: int
) -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        states = [await _state(store)]
        sizes = [len(files.content[JOURNAL_NAME])]
        for operations in transactions:
            await store.multi_many([operations])
            states.append(await _state(store))
            sizes.append(len(files.content[JOURNAL_NAME]))
        journal = files.content[JOURNAL_NAME]
        cut = sizes[0] + round(tear * (len(journal) - sizes[0]))
        acknowledged = max(index for index, size in enumerate(sizes) if size <= cut)
        torn = bytes(byte ^ rot for byte in journal[sizes[acknowledged] : cut])
        if rot == 0:
            torn = journal[sizes[acknowledged] : cut]
        crashed = VolatileFiles({JOURNAL_NAME: journal[: sizes[acknowledged]] + torn})
        reopened = await EmbeddedStore.open(crashed)
        assert await _state(reopened) == states[acknowledged]
        await reopened.multi_many([[Create("/after")]])
        again = await EmbeddedStore.open(crashed)
        assert (await _state(again)).keys() - {"/after"} == states[acknowledged].keys()

    asyncio.run(scenario())


@given(transactions=_transactions)
@settings(max_examples=60, deadline=None)
def test_crash_between_any_two_file_operations_keeps_all_acknowledged(
    transactions: list[list[Operation]],
) -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        expected: list[tuple[int, State]] = [(len(files.history), await _state(store))]
        for operations in transactions:
            await store.multi_many([operations])
            expected.append((len(files.history), await _state(store)))
        for step in range(1, len(files.history) + 1):
            reopened = await EmbeddedStore.open(VolatileFiles(files.history[step - 1][1]))
            promised = max(i for i, (when, _) in enumerate(expected) if when <= step)
            allowed = [state for _, state in expected[promised : promised + 2]]
            assert await _state(reopened) in allowed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 150)
        asyncio.run(scenario())


def test_damage_before_acknowledged_records_is_refused_and_nothing_changes() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        await store.create("/a", b"first")
        middle = len(files.content[JOURNAL_NAME]) - 3
        await store.create("/b", b"second")
        journal = bytearray(files.content[JOURNAL_NAME])
        journal[middle] ^= 0xFF
        damaged = VolatileFiles({JOURNAL_NAME: bytes(journal)})
        with pytest.raises(DamagedStoreError, match="damaged, but a valid one follows"):
            await EmbeddedStore.open(damaged)
        assert damaged.content == {JOURNAL_NAME: bytes(journal)}

    asyncio.run(scenario())


@pytest.mark.parametrize("name", [JOURNAL_NAME, SNAPSHOT_NAME])
def test_damaged_header_missing_or_foreign_file_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        for number in range(10):
            await store.create(f"/n{number}", b"x" * 50)
        assert SNAPSHOT_NAME in files.content
        for damage in (b"", b"not ours", b"\0" * 100):
            damaged = VolatileFiles({**files.content, name: damage})
            with pytest.raises(DamagedStoreError, match=name):
                await EmbeddedStore.open(damaged)
        missing = VolatileFiles({k: v for k, v in files.content.items() if k != name})
        with pytest.raises(DamagedStoreError):
            await EmbeddedStore.open(missing)

    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 200)
    asyncio.run(scenario())


def test_full_disk_refuses_the_write_and_a_later_one_succeeds() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        await store.create("/a", b"kept")
        files.is_full = True
        outcomes = await asyncio.gather(
            store.create("/b", None), store.set("/a", b"lost"), return_exceptions=True
        )
        assert all(isinstance(outcome, StoreUnavailableError) for outcome in outcomes)
        assert await store.exists("/b") is None
        assert (await store.get("/a")).data == b"kept"
        files.is_full = False
        await store.create("/c", None)
        reopened = await EmbeddedStore.open(VolatileFiles(files.content))
        assert await reopened.children("/") == ["a", "c"]

    asyncio.run(scenario())


class OddFiles(VolatileFiles):
    """Files that fail on demand with an error that no disk raises."""

    is_odd = False

    def write_at(self, name: str, position: int, data: bytes) -> None:
        if self.is_odd:
            raise ValueError("odd")
        super().write_at(name, position, data)

    def truncate(self, name: str, size: int) -> None:
        if self.is_odd:
            raise ValueError("odd")
        super().truncate(name, size)


def _fail(*_: object) -> bytes:
    raise ValueError("odd")


@pytest.mark.parametrize("threads", [0, 1])
def test_an_unforeseen_error_refuses_the_write_and_a_later_one_succeeds(threads: int) -> None:
    async def scenario(executor: ThreadPoolExecutor | None) -> None:
        files = OddFiles()
        store = await EmbeddedStore.open(files, executor)
        await store.create("/a", b"kept")
        files.is_odd = True
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(
                store.create("/b", None), store.set("/a", b"lost"), return_exceptions=True
            )
            assert all(isinstance(outcome, StoreUnavailableError) for outcome in outcomes)
            files.is_odd = False
            await store.create("/c", None)
        assert await store.children("/") == ["a", "c"]
        reopened = await EmbeddedStore.open(VolatileFiles(files.content))
        assert await reopened.children("/") == ["a", "c"]
        assert (await reopened.get("/a")).data == b"kept"

    if threads:
        with ThreadPoolExecutor(threads) as executor:
            asyncio.run(scenario(executor))
    else:
        asyncio.run(scenario(None))


def test_a_transaction_that_cannot_be_encoded_is_refused_and_a_later_one_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        async with asyncio.timeout(10):
            with monkeypatch.context() as patch:
                patch.setattr(embedded_store, "encode_frame", _fail)
                with pytest.raises(StoreUnavailableError, match="odd"):
                    await store.create("/a", None)
            await store.create("/b", None)
        assert await store.children("/") == ["b"]

    asyncio.run(scenario())


def test_path_that_is_too_long_is_refused_and_costs_no_other_write() -> None:
    async def scenario() -> None:
        store = await EmbeddedStore.open(VolatileFiles())
        long = [Create("/" + "é" * 40_000)]

        refused, created = await store.multi_many([long, [Create("/a")]])

        assert isinstance(refused, TooLargeError)
        assert created == ["/a"]
        assert await store.children("/") == ["a"]

    asyncio.run(scenario())


def test_a_failed_snapshot_keeps_acknowledged_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 100)

    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        monkeypatch.setattr(embedded_store, "encode_snapshot", _fail)
        async with asyncio.timeout(10):
            for number in range(10):
                await store.create(f"/t{number}", b"x" * 50)
        reopened = await EmbeddedStore.open(VolatileFiles(files.content))
        assert len(await reopened.children("/")) == 10

    asyncio.run(scenario())


class HalfReplacingFiles(VolatileFiles):
    """Files that fail on demand when a new file is in place or just before."""

    is_failing = False
    is_replaced = False

    def replace(self, name: str, data: bytes) -> None:
        if self.is_failing and name == JOURNAL_NAME:
            if self.is_replaced:
                super().replace(name, data)
            raise OSError(24, "Too many open files")
        super().replace(name, data)


@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_lost_when_it_is_not_known_which_journal_is_there(
    is_replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_store, "SNAPSHOT_AFTER_BYTES", 300)

    async def scenario() -> None:
        files = HalfReplacingFiles()
        files.is_replaced = is_replaced
        store = await EmbeddedStore.open(files)
        for number in range(20):
            files.is_failing = number < 10
            await store.create(f"/t{number}", b"x" * 50)
            reopened = await EmbeddedStore.open(VolatileFiles(files.content))
            assert len(await reopened.children("/")) == number + 1

    asyncio.run(scenario())


def test_a_write_after_the_threads_have_ended_is_refused() -> None:
    async def scenario() -> None:
        executor = ThreadPoolExecutor(1)
        store = await EmbeddedStore.open(VolatileFiles(), executor)
        executor.shutdown()
        async with asyncio.timeout(10):
            for _ in range(2):
                with pytest.raises(StoreUnavailableError):
                    await store.create("/a", None)

    asyncio.run(scenario())


def test_ephemeral_nodes_of_an_earlier_process_are_gone_and_epochs_grow() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        epochs: list[int] = []
        for _ in range(3):
            store = await EmbeddedStore.open(files)
            assert await store.exists("/live") is None
            await store.create("/live", None, ephemeral=True)
            epochs.append((await store.get("/live")).czxid)
        assert epochs == sorted(set(epochs))

    asyncio.run(scenario())


def test_concurrent_writes_share_a_sync() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        before = files.writes
        await asyncio.gather(*(store.create(f"/t{number}", None) for number in range(1000)))
        assert files.writes - before <= 2

    asyncio.run(scenario())


def test_real_files_and_a_thread_survive_reopening() -> None:
    async def scenario(directory: str) -> None:
        with ThreadPoolExecutor(1) as executor:
            store = await EmbeddedStore.open(LocalStoreFiles(directory), executor)
            await asyncio.gather(*(store.create(f"/t{n}", b"x" * 100) for n in range(300)))
            await store.set("/t7", b"seven")
            await store.close()
            reopened = await EmbeddedStore.open(LocalStoreFiles(directory), executor)
            assert len(await reopened.children("/")) == 300
            assert (await reopened.get("/t7")).data == b"seven"
            assert reopened.recovery.cut_bytes == 0
            await reopened.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(directory))


def test_clean_close_leaves_a_snapshot_of_a_long_journal() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        await store.create("/live", None, ephemeral=True)
        for number in range(100):
            await store.create(f"/t{number}", b"x" * 1000)
        await store.close()
        assert SNAPSHOT_NAME in files.content
        reopened = await EmbeddedStore.open(VolatileFiles(files.content))
        assert len(await reopened.children("/")) == 100
        assert reopened.recovery.replayed_transactions == 0

    asyncio.run(scenario())


def test_refused_transaction_leaves_no_trace_in_the_journal() -> None:
    async def scenario() -> None:
        files = VolatileFiles()
        store = await EmbeddedStore.open(files)
        size = len(files.content[JOURNAL_NAME])
        with pytest.raises(StoreError):
            await store.multi([Create("/a"), Create("/a")])
        assert len(files.content[JOURNAL_NAME]) == size

    asyncio.run(scenario())
