"""A thread with an event loop of its own, which does what other threads ask."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from broker.embedded.errors import EmbeddedBrokerError
from broker.embedded.machine.cuttable_network import EmbeddedLoop
from broker.embedded.machine.log_lines import OWNER
from broker.runtime.clock import SystemClock
from broker.runtime.open_files import LoopErrors

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

    from broker.embedded.machine.log_lines import LogLines
    from broker.embedded.machine.turned_time import TurnedTime

T = TypeVar("T")

LONGEST_SECONDS = 120
"""A call that takes longer has met a defect of ours, and its test shall not hang."""


class LoopThread:
    """Runs coroutines for others. It is a daemon, so that a test that dies does not hang."""

    def __init__(self, name: str, lines: LogLines, turned: TurnedTime) -> None:
        self._name = name
        self._lines = lines
        self._process = os.getpid()
        self._loop = EmbeddedLoop(turned)
        self._loop.set_exception_handler(LoopErrors(SystemClock()))
        self._go_on = threading.Event()
        self._go_on.set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_paused(self) -> bool:
        """True if it is suspended, until `resume`."""
        return not self._go_on.is_set()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop; return its result or raise its exception."""
        try:
            self._check()
        except EmbeddedBrokerError:
            work.close()
            raise
        done: Future[T] = asyncio.run_coroutine_threadsafe(self._owned(work), self._loop)
        try:
            return done.result(LONGEST_SECONDS)
        except TimeoutError:
            if done.done():
                raise
            done.cancel()
            raise EmbeddedBrokerError(f"{self._name}: no answer in {LONGEST_SECONDS} s") from None
        except BaseException:
            done.cancel()  # Ctrl-C, say
            raise

    def pause(self) -> None:
        """Suspend the loop: the kernel accepts connections, and none is served."""
        self._check()
        self._go_on.clear()
        self._loop.call_soon_threadsafe(self._go_on.wait)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._go_on.set()

    def close(self) -> None:
        """End the loop and the thread; what still runs on it is cancelled."""
        if self._process != os.getpid() or self._loop.is_closed():
            return
        self.resume()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def check_process(self) -> None:
        """Raise EmbeddedBrokerError in a fork of the process that it runs in."""
        if self._process != os.getpid():
            raise EmbeddedBrokerError(
                f"{self._name} runs in process {self._process}, and this one is its fork: clients "
                "can connect, but only the process that started it can tell it anything"
            )

    def _check(self) -> None:
        self.check_process()
        if self._loop.is_closed():
            raise EmbeddedBrokerError(f"{self._name} is closed")
        if self.is_paused:
            raise EmbeddedBrokerError(f"{self._name} is paused: call resume() first")
        assert threading.current_thread() is not self._thread

    async def _owned(self, work: Coroutine[Any, Any, T]) -> T:
        OWNER.set(self._lines)
        return await work

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(self._last_steps())
        finally:
            asyncio.set_event_loop(None)

    async def _last_steps(self) -> None:
        others = asyncio.all_tasks(self._loop) - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.break_off()
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()
