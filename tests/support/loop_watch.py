"""Finds callbacks that held up an event loop: by the clock, but for what the machine took.

What counts is time that passes, so that waiting counts as computing does: for a name server, for
`fsync`, for a lock. A test must not fail, though, because the machine is busy. Taken off is

    time that threads of this process were ready to run and had no processor (Linux says so in
    /proc/self/task/*/schedstat; of all threads, as ours may have waited for another one of them)
    time that the hypervisor gave to others (`steal` in /proc/stat)
    time in which somebody on this machine waited for a disk or for memory (/proc/pressure): a page
        that is read from a busy disk may take a second, whoever asks for it
    looking for garbage cycles, which among the objects of thousands of tests takes long
    the functions in `EXCUSED`, and what a test does `as_another_process`

On a quiet machine a callback that blocks is thus always found; on a busy one, where the limit is
five times as long, it may be overlooked, but none is blamed for its neighbours.

What waits until something is on the disk is found without a clock, however fast the disk is: each
`fsync` that is called where an event loop runs. Tests that mean it say so, by `disk_in_place()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import os
import pkgutil
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

H = TypeVar("H")
HANDLE: Final[Any] = asyncio.Handle

LIMIT_SECONDS: Final = 0.05
"""Limit in tests; 10 ms in production. The rest leaves room for the test's own computing."""

BUSY_FACTOR: Final = 5
BUSY_LOAD: Final = 2.0
"""Runnable processes for each processor beyond which shared caches and memory slow each down, which
no counter shows."""

TRACED_FACTOR: Final = 10
"""Coverage slows Python down by as much."""

EXCUSED: Final = {
    "protocol.compiler:compile_decoder": "once for each message and version, 6 ms at most",
    "protocol.compiler:compile_encoder": "as above",
    "asyncio.base_events:BaseEventLoop.shutdown_default_executor": "a loop that ends; Python's own",
    "threading:Thread.start": "of a pool: until the thread has begun to run",
    "threading:Thread.join": "when a broker ends: nobody is served any more",
    "storage.filesystem:LocalFile.read_at": "the page cache; a busy disk may make it wait",
    "storage.filesystem:LocalFile.write_at": "as above: appends happen on the loop",
    "storage.filesystem:LocalFile.truncate": "as above",
    "storage.filesystem:LocalFileSystem.open": "as above",
    "storage.filesystem:LocalFileSystem.scan": "as above: at the start, and when a log is made",
    "storage.filesystem:LocalFileSystem.read": "as above",
    "storage.filesystem:LocalFileSystem.make_directory": "as above: when a log is made",
    "storage.filesystem:LocalFileSystem.rename": "as above: when a log or a segment goes",
    "storage.filesystem:LocalFileSystem.remove": "as above",
}
"""Functions whose time does not count, and why. `tests/test_tidy.py` keeps the list from growing.

What waits until something is on the disk is not among them, and must not be on the loop.
"""

SYNCS: Final = ("fsync", "fdatasync", "sync")
PRESSURES: Final = ("io", "memory")
FRAMES_TOLD: Final = 6

BASELINE_SECONDS: Final = 0.005
"""Greatest age of the previous reading: reading it for each callback would take too long."""

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
STEAL: Final = 8
"""Index of the field in the line that begins with "cpu"."""


def waited_seconds() -> float:
    """Return how long this process was ready without running, so far; 0.0 if unknown."""
    return _waited_for_a_processor() + _stolen() + sum(map(_stalled, PRESSURES))


def _waited_for_a_processor() -> float:
    try:
        tasks = os.listdir("/proc/self/task")  # noqa: PTH208 (often)
    except OSError:
        return 0.0
    return sum(map(_delay_of, tasks))


def _delay_of(task: str) -> float:
    try:
        with open(f"/proc/self/task/{task}/schedstat", "rb") as file:  # noqa: PTH123 (often)
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):  # it has ended meanwhile, or there is no such file
        return 0.0


def _stolen() -> float:
    try:
        with open("/proc/stat", "rb") as file:  # noqa: PTH123 (often)
            return int(file.readline().split()[STEAL]) / TICKS_PER_SECOND
    except (OSError, IndexError):
        return 0.0


def _stalled(resource: str) -> float:
    """Seconds since the start of the machine in which a process waited for it (`some`, PSI)."""
    try:
        with open(f"/proc/pressure/{resource}", "rb") as file:  # noqa: PTH123 (often)
            return int(file.readline().rpartition(b"=")[2]) / 1e6
    except (OSError, ValueError):
        return 0.0


def limit_seconds() -> float:
    """Return the time limit of a callback: longer on a busy machine and under coverage."""
    if _is_traced():
        return LIMIT_SECONDS * TRACED_FACTOR
    is_busy = os.getloadavg()[0] > BUSY_LOAD * (os.cpu_count() or 1)
    return LIMIT_SECONDS * BUSY_FACTOR if is_busy else LIMIT_SECONDS


class _Excuses(threading.local):
    """Excused seconds of each thread, and whether one of the functions is running."""

    seconds = 0.0
    is_inside = False
    may_sync = False


_EXCUSES = _Excuses()


@contextlib.contextmanager
def disk_in_place() -> Iterator[None]:
    """Wait for the disk where an event loop may run: for tests that stand in for a thread."""
    before, _EXCUSES.may_sync = _EXCUSES.may_sync, True
    try:
        yield
    finally:
        _EXCUSES.may_sync = before


@contextlib.contextmanager
def as_another_process() -> Iterator[None]:
    """Do in place what a process of its own does, or the start of one: its time does not count."""
    if _EXCUSES.is_inside:
        yield
        return
    _EXCUSES.is_inside = True
    began = time.perf_counter()
    try:
        yield
    finally:
        _EXCUSES.seconds += time.perf_counter() - began
        _EXCUSES.is_inside = False


class LoopWatch:
    """Watches all event loops of this process between `begin` and `end`."""

    def __init__(
        self,
        waited: Callable[[], float] = waited_seconds,
        clock: Callable[[], float] = time.perf_counter,
        limit: Callable[[], float] = limit_seconds,
    ) -> None:
        """Set times in seconds; `waited()` is how long this process had to wait for the machine."""
        self._waited = waited
        self._limit = limit
        self._clock = clock
        self._baseline = 0.0
        self._baseline_at = -1.0
        self._excuses = _EXCUSES
        self._collecting = 0.0
        self._collection_began = 0.0
        self._run = HANDLE._run
        self._excused_coroutines: set[str | None] = set()
        self._replaced: list[tuple[Any, str, Any]] = []
        self.held: list[str] = []
        """Callbacks that blocked a loop since `begin`, and for how long."""

    def excuse(self) -> None:
        """Exclude the time in the functions of `EXCUSED`, from now on, in this process.

        And those that wait for the disk tell when they are called on an event loop.
        """
        for name in SYNCS:
            function = getattr(os, name)
            self._replaced.append((os, name, function))
            setattr(os, name, self.telling(function))
        for name in EXCUSED:
            owner, attribute = resolved(name)
            function = getattr(owner, attribute)
            if inspect.iscoroutinefunction(function):
                self._excused_coroutines.add(function.__qualname__)
                continue
            self._replaced.append((owner, attribute, function))
            setattr(owner, attribute, self._excused(function))

    def count_again(self) -> None:
        """Undo `excuse`."""
        while self._replaced:
            setattr(*self._replaced.pop())
        self._excused_coroutines.clear()

    def begin(self) -> None:
        """Watch."""
        self.held = []
        HANDLE._run = self.timed(self._run)
        gc.callbacks.append(self._on_collection)

    def end(self) -> None:
        """Watch no more."""
        HANDLE._run = self._run
        gc.callbacks.remove(self._on_collection)

    def timed(self, run: Callable[[H], None]) -> Callable[[H], None]:
        """`run`, which runs a callback, with a look at the clock before and after."""
        clock, excuses = self._clock, self._excuses

        def timed_run(handle: H) -> None:
            began = clock()
            if began - self._baseline_at > BASELINE_SECONDS:
                self._baseline = self._waited()
                self._baseline_at = began = clock()
            excused = excuses.seconds + self._collecting
            run(handle)
            seconds = clock() - began - (excuses.seconds + self._collecting - excused)
            if seconds > LIMIT_SECONDS:
                self._judge(handle, seconds)

        return timed_run

    def telling(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `function`, which waits for a disk, to report its calls by an event loop."""

        @functools.wraps(function)
        def synced(*arguments: Any, **keywords: Any) -> Any:
            if asyncio._get_running_loop() is not None and not self._excuses.may_sync:
                frames = traceback.extract_stack(limit=FRAMES_TOLD + 1)[:-1]
                callers = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
                self.held.append(f"os.{function.__name__} on the event loop: {callers}")
            return function(*arguments, **keywords)

        return synced

    def _judge(self, handle: object, seconds: float) -> None:
        if _coroutine_of(handle) in self._excused_coroutines:
            return
        seconds -= self._waited() - self._baseline
        self._baseline_at = -1.0
        if seconds > self._limit():
            self.held.append(f"{seconds:.3f} s in {_named(handle)}")

    def _excused(self, function: Callable[..., Any]) -> Callable[..., Any]:
        excuses, clock = self._excuses, self._clock

        @functools.wraps(function)
        def excused(*arguments: Any, **keywords: Any) -> Any:
            if excuses.is_inside:
                return function(*arguments, **keywords)
            excuses.is_inside = True
            began = clock()
            try:
                return function(*arguments, **keywords)
            finally:
                excuses.seconds += clock() - began
                excuses.is_inside = False

        return excused

    def _on_collection(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collection_began = self._clock()
        else:
            self._collecting += self._clock() - self._collection_began


def resolved(name: str) -> tuple[Any, str]:
    """Return the owner of the attribute that a name of `EXCUSED` means, and the attribute."""
    module, _, inner = name.partition(":")
    owner, _, attribute = inner.rpartition(".")
    return pkgutil.resolve_name(f"{module}:{owner}" if owner else module), attribute


def _is_traced() -> bool:
    return sys.gettrace() is not None


def _task_of(handle: object) -> asyncio.Task[Any] | None:
    task = getattr(getattr(handle, "_callback", None), "__self__", None)
    return task if isinstance(task, asyncio.Task) else None


def _coroutine_of(handle: object) -> str | None:
    task = _task_of(handle)
    return None if task is None else getattr(task.get_coro(), "__qualname__", None)


def _named(handle: object) -> str:
    """The callback; of a task which one, with what it runs."""
    task = _task_of(handle)
    return repr(handle) if task is None else f"task {task.get_name()}, {task.get_coro()!r}"
