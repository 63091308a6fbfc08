"""Flushes for many at once: what shares a thread's turn, and what an error of one costs others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, cast

from broker.partitions.group_commit import LOGS_AT_ONCE, POOL, RETRY_MS, THREADS, GroupCommit
from protocol.errors import ApiError, ErrorCode
from storage.errors import ExhaustedError, LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from broker.partitions.durability import Durability
    from broker.runtime.platform import Platform
    from broker.runtime.timers import Timers


async def turn() -> None:
    """Run the pending callbacks of the event loop."""
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(over.set_result, None)
    await over


DISK_ERROR = OSError("planted")


class HeldThreads(Executor):
    """Threads that work when the test says so."""

    def __init__(self) -> None:
        self.works: list[tuple[Callable[[], Any], Future[Any]]] = []
        self.is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self.works.append((lambda: fn(*args, **kwargs), done))
        return done

    async def work(self) -> None:
        """Do the submitted work on another thread, and report it to the loop."""
        works, self.works = self.works, []
        for work, done in works:
            thread = threading.Thread(target=lambda work=work, done=done: done.set_result(work()))
            thread.start()
            thread.join()
        for _ in range(3):
            await turn()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.is_shut_down = True


class OneLog:
    """Stands for a log and its flush, with what the group commit asks of them."""

    files = ("first", "second")

    def __init__(
        self, ends: list[tuple[str, Exception | None]], name: str, directory: str = "/data"
    ) -> None:
        self.name = name
        self.directory = directory
        self.is_under_way = False
        self.starts = 0
        self.start_error: ApiError | None = None
        self.work_error: Exception | None = None
        self.end_error: Exception | None = None
        self.group: GroupCommit | None = None
        self._ends = ends

    def __str__(self) -> str:
        return self.name

    def start(self) -> OneLog:
        assert not self.is_under_way
        self.starts += 1
        if self.start_error is not None:
            raise self.start_error
        self.is_under_way = True
        return self

    def ended(self, error: Exception | None) -> None:
        self.is_under_way = False
        self._ends.append((self.name, error))
        if self.end_error is not None:
            raise self.end_error

    def flush_if_due(self) -> None:
        assert self.group is not None
        self.group.add(cast("Durability", self))

    def finish(self, outcomes: list[Exception | None]) -> None:
        assert threading.current_thread() is not threading.main_thread()
        assert outcomes == [DISK_ERROR, None]
        if self.work_error is not None:
            raise self.work_error


class Group:
    """A group commit on threads that wait, and its reports."""

    def __init__(self, *, syncs_together: bool = True) -> None:
        self.threads = HeldThreads()
        self.filesystem = OneFileSystem(syncs_together)
        self.failures: list[BaseException] = []
        self.scheduled: list[tuple[float, Callable[[], object]]] = []
        self.ends: list[tuple[str, Exception | None]] = []
        self.commit = GroupCommit(
            asyncio.get_running_loop(),
            cast("Timers", self),
            cast("Platform", OnePool(self.threads, self.filesystem)),
        )

    def log(self, name: str = "one", directory: str = "/data") -> OneLog:
        log = OneLog(self.ends, name, directory)
        log.group = self.commit
        return log

    async def add(self, *logs: OneLog) -> None:
        for log in logs:
            log.flush_if_due()
        await turn()

    # Timers

    def soon(self, callback: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def schedule(self, delay_ms: float, callback: Callable[[], object]) -> None:
        self.scheduled.append((delay_ms, callback))

    def on_failure(self, name: str, error: BaseException) -> None:
        assert name == "group commit"
        self.failures.append(error)


class OneFileSystem:
    """File system that fails the first file of each log, with errors that the log handles."""

    def __init__(self, syncs_together: bool) -> None:
        self.syncs_together = syncs_together
        self.calls: list[int] = []
        self.error: Exception | None = None

    def sync_files(self, files: list[str]) -> list[OSError | None]:
        assert threading.current_thread() is not threading.main_thread()
        self.calls.append(len(files))
        if self.error is not None:
            raise self.error
        return [DISK_ERROR if file == OneLog.files[0] else None for file in files]


class OnePool:
    """A platform that has these threads and no others."""

    def __init__(self, threads: Executor, filesystem: OneFileSystem) -> None:
        self._threads = threads
        self.filesystem = filesystem

    def threads(self, count: int, name: str) -> Executor:
        assert (count, name) == (THREADS, POOL)
        return self._threads


def run(
    scenario: Callable[[Group], Coroutine[Any, Any, None]], *, syncs_together: bool = True
) -> None:
    async def main() -> None:
        await scenario(Group(syncs_together=syncs_together))

    asyncio.run(main())


def test_concurrent_flushes_share_one_sync_call() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number)) for number in range(3)]
        await group.add(*logs)
        await group.threads.work()

        assert group.filesystem.calls == [6]
        assert group.ends == [(log.name, None) for log in logs]

    run(scenario)


def test_another_directory_has_a_thread_of_its_own() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number), f"/data{number % 2}") for number in range(4)]
        await group.add(*logs)
        assert len(group.threads.works) == 2
        await group.threads.work()

        assert group.filesystem.calls == [4, 4]
        assert [name for name, _ in group.ends] == ["0", "2", "1", "3"]

    run(scenario)


def test_more_directories_than_threads_wait_for_one() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number), f"/data{number}") for number in range(THREADS + 2)]
        await group.add(*logs)
        assert len(group.threads.works) == THREADS
        await group.threads.work()
        await group.threads.work()

        assert len(group.ends) == len(logs)

    run(scenario)


def test_an_error_of_the_shared_sync_call_is_noted_for_all_logs() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number)) for number in range(2)]
        group.filesystem.error = ValueError("planted")
        await group.add(*logs)
        await group.threads.work()

        assert group.failures == [group.filesystem.error] * 2
        assert not any(log.is_under_way for log in logs)

    run(scenario)


def test_concurrent_flushes_without_a_shared_call_are_spread_over_threads() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number)) for number in range(3 * THREADS)]
        await group.add(*logs, *logs)

        assert len(group.threads.works) == THREADS
        await group.threads.work()

        assert [name for name, _ in group.ends] == [log.name for log in logs]
        assert group.commit.count == len(logs)
        assert {log.starts for log in logs} == {1}

    run(scenario, syncs_together=False)


def test_a_log_is_flushed_by_one_thread_at_a_time() -> None:
    async def scenario(group: Group) -> None:
        log, other = group.log(), group.log("other")
        await group.add(log)
        await group.add(log, other)
        assert (log.starts, other.starts) == (1, 1)

        await group.threads.work()

        assert log.starts == 2
        await group.threads.work()
        assert [name for name, _ in group.ends] == ["one", "other", "one"]

    run(scenario)


def test_flushes_per_thread_are_bounded() -> None:
    async def scenario(group: Group) -> None:
        logs = [group.log(str(number)) for number in range(LOGS_AT_ONCE * (THREADS + 2))]
        await group.add(*logs)

        assert sum(log.starts for log in logs) == LOGS_AT_ONCE * THREADS
        for _ in range(2):
            await group.threads.work()

        assert len(group.ends) == len(logs)

    run(scenario)


def test_a_disk_error_ends_only_the_flush_of_its_own_log() -> None:
    async def scenario(group: Group) -> None:
        sick, sound, unready = group.log("sick"), group.log("sound"), group.log("unready")
        sick.work_error = LogDirectoryError("/data", "planted")
        unready.start_error = LogDirectoryError("/data", "planted before")
        await group.add(sick, unready, sound)

        await group.threads.work()

        assert dict(group.ends) == {
            "sick": sick.work_error,
            "unready": unready.start_error,
            "sound": None,
        }
        assert (group.scheduled, group.failures) == ([], [])

    run(scenario)


def test_unforeseen_errors_are_noted_and_delay_no_other_log() -> None:
    async def scenario(group: Group) -> None:
        broken, careless, sound = group.log("broken"), group.log("careless"), group.log("sound")
        broken.work_error = KeyError("planted")
        careless.end_error = ValueError("planted")
        await group.add(broken, careless, sound)

        await group.threads.work()

        assert group.failures == [broken.work_error, careless.end_error]
        (told,) = (error for name, error in group.ends if name == "broken")
        assert isinstance(told, ApiError)
        assert told.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert ("sound", None) in group.ends
        await group.add(broken, careless, sound)
        assert (broken.starts, careless.starts, sound.starts) == (2, 2, 2)

    run(scenario)


def test_a_want_of_descriptors_is_tried_again() -> None:
    async def scenario(group: Group) -> None:
        log = group.log()
        log.start_error = ExhaustedError("/data", "planted")
        await group.add(log)
        assert [error for _, error in group.ends] == [log.start_error]
        ((delay_ms, again),) = group.scheduled
        assert delay_ms == RETRY_MS

        log.start_error = None
        again()
        await turn()
        await group.threads.work()

        assert [error for _, error in group.ends][1:] == [None]

    run(scenario)


def test_no_flush_is_reported_after_close() -> None:
    async def scenario(group: Group) -> None:
        log, other = group.log(), group.log("other")
        await group.add(log)
        other.flush_if_due()
        group.commit.close()
        await turn()

        await group.threads.work()

        assert group.threads.is_shut_down
        assert (group.ends, other.starts) == ([], 0)

    run(scenario)
