"""An event loop whose clock jumps to the next timer: ten virtual minutes in a second."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from tests.simulation.machine.hosts import HOST
from tests.simulation.machine.sockets import SOCKETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from tests.simulation.machine.hosts import Host
    from tests.simulation.machine.network import Network
    from tests.simulation.machine.sockets import End

T = TypeVar("T")

START_SECONDS = 1000.0
TURNS_AT_ONE_INSTANT = 5_000


class DeadlockError(Exception):
    """Nothing is ready and nothing will ever be."""


class BusyError(Exception):
    """Somebody works without end, and no time passes."""


class _Waiting:
    """In place of a selector: waiting is moving the clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise DeadlockError("everything waits, and no timer is set")
        self._turns = 0 if timeout > 0 else self._turns + 1
        if self._turns > TURNS_AT_ONE_INSTANT:
            raise BusyError(f"{self._turns} turns of the loop, and it is still {self._loop.now}")
        self._loop.now += max(timeout, 0)
        return []

    def close(self) -> None:
        """Nothing is open."""


class _Watch:
    """Callback for a descriptor that becomes readable, or writable."""

    __slots__ = ("args", "callback", "context", "is_due")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback = callback
        self.args = args
        self.context = contextvars.copy_context()
        self.is_due = False


class _NumberedTask(asyncio.Task[Any]):
    """Sets of tasks keep one order in all runs: it does not hang on addresses in memory."""

    _numbers = itertools.count()

    def __init__(self, loop: asyncio.AbstractEventLoop, coro: Any, **values: Any) -> None:
        self.number = next(self._numbers)
        super().__init__(coro, loop=loop, **values)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


@runtime_checkable
class SlowExecutor(Protocol):
    """Threads on which work has to wait."""

    def delay(self) -> float:
        """Return the seconds that the next piece waits."""
        ...


class VirtualLoop(asyncio.BaseEventLoop):
    """Callbacks run as on any loop; time passes only when there is nothing to run."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START_SECONDS
        self.network: Network | None = None
        self.steps = 0
        """Callbacks run so far."""
        self.after_step: Callable[[], None] | None = None
        """Looks at the cluster after each callback of a broker."""
        self.hosts_of_tasks: dict[asyncio.Task[Any], Host | None] = {}
        self._selector = _Waiting(self)
        self._transports: WeakValueDictionary[int, Any] = WeakValueDictionary()
        """As asyncio's own transports expect it of a loop."""
        self._readers: dict[int, _Watch] = {}
        self._writers: dict[int, _Watch] = {}
        self.set_task_factory(_NumberedTask)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Virtual seconds."""
        return self.now

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nobody sleeps, so nobody has to be woken."""

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As ever, but for a host only while it lives."""
        return super().call_soon(self._guarded(callback, context), *args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """There are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As ever, but for a host only while it lives."""
        return super().call_at(when, self._guarded(callback, context), *args, context=context)

    def thaw(self, host: Host) -> None:
        """Let a stopped process go on, with all that came due meanwhile, in its order."""
        host.is_frozen = False
        held, host.held = host.held, []
        for callback, args, context in held:
            contextvars.Context().run(
                super().call_soon, callback, *args, context=context or contextvars.copy_context()
            )

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        """As ever, and note whose task it is."""
        task = super().create_task(coro, name=name, context=context)
        self.hosts_of_tasks[task] = HOST.get() if context is None else context.get(HOST)
        task.add_done_callback(lambda done: self.hosts_of_tasks.pop(done, None))
        return task

    def _guarded(self, callback: Callable[..., Any], context: Any) -> Callable[..., Any]:
        host = HOST.get() if context is None else context.get(HOST)
        if host is None:
            return callback
        context = contextvars.copy_context() if context is None else context

        def run(*args: Any) -> None:
            if host.is_dead:
                return
            if host.is_frozen:
                host.held.append((run, args, context))
                return
            self.steps += 1
            callback(*args)
            if self.after_step is not None:
                self.after_step()

        return run

    # Descriptors

    def add_reader(self, fd: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        """Call back, again and again, while there is something to read."""
        self._readers[fd] = _Watch(callback, args)
        self._look_at(fd)

    def remove_reader(self, fd: int) -> bool:  # type: ignore[override]
        """The opposite."""
        return self._readers.pop(fd, None) is not None

    def add_writer(self, fd: int, callback: Any, *args: Any) -> None:  # type: ignore[override]
        """Call back, again and again, while something can be sent."""
        self._writers[fd] = _Watch(callback, args)
        self._look_at(fd)

    def remove_writer(self, fd: int) -> bool:  # type: ignore[override]
        """The opposite."""
        return self._writers.pop(fd, None) is not None

    _add_reader, _remove_reader = add_reader, remove_reader
    _add_writer, _remove_writer = add_writer, remove_writer

    def descriptor_changed(self, end: End) -> None:
        """It can be read or written now, perhaps, or has failed."""
        for fd in tuple(end.descriptors):
            self._look_at(fd)

    def _look_at(self, fd: int) -> None:
        """Schedule who watches a descriptor, if it is time."""
        found = SOCKETS.get(fd)
        if found is None:
            return
        for watches, is_due in (
            (self._readers, found.is_readable),
            (self._writers, found.is_writable),
        ):
            watch = watches.get(fd)
            if watch is not None and not watch.is_due and is_due():
                self._schedule(fd, watches, watch)

    def _schedule(self, fd: int, watches: dict[int, _Watch], watch: _Watch) -> None:
        assert self.network is not None

        def call() -> None:
            watch.is_due = False
            if watches.get(fd) is watch:
                watch.callback(*watch.args)
                self._look_at(fd)

        watch.is_due = True
        lag = self.network.lag()
        if lag:
            self.call_at(self.now + lag, call, context=watch.context)
        else:
            self.call_soon(call, context=watch.context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Work of threads is done in one piece, a moment later, or as late as they like."""
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if done.cancelled():
                return
            try:
                done.set_result(func(*args))
            except Exception as error:
                done.set_exception(error)

        delay = executor.delay() if isinstance(executor, SlowExecutor) else 0.0
        if delay:
            self.call_later(delay, work)
        else:
            self.call_soon(work)
        return done

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        """Listen on the simulated network."""
        assert self.network is not None
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        """Connect over the simulated network."""
        assert self.network is not None
        return await self.network.connect(protocol_factory, host, port)
