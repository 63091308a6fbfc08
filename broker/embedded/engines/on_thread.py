"""A broker on a thread of this process, with an event loop of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.embedded.hosted_broker import HostedBroker, Surroundings
from broker.embedded.machine.log_lines import LogLines, unwatch, watch
from broker.embedded.machine.loop_thread import LoopThread
from broker.embedded.machine.turned_time import TurnedTime

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from broker.embedded.settings import BrokerSettings

FROM_ANY_THREAD: Final = frozenset(
    {
        "add_fault",
        "fall_silent",
        "fault_count",
        "forget_requests",
        "is_running",
        "log_lines",
        "remove_fault",
        "sent_requests",
    }
)
"""Non-blocking operations on locked state: a paused broker carries them out, too."""


class ThreadEngine:
    """`Engine` in this process."""

    def __init__(self, settings: BrokerSettings, surroundings: Surroundings) -> None:
        watch()
        name = f"embedded broker {settings.broker_id}"
        self._thread = LoopThread(name, surroundings.lines, surroundings.turned)
        self._broker = HostedBroker(settings, surroundings)
        self._is_closed = False

    @property
    def is_paused(self) -> bool:
        """True if its thread is stopped."""
        return self._thread.is_paused

    def ask(self, operation: str, *arguments: object) -> Any:  # noqa: ANN401 - see Engine
        """Do it on the broker's thread."""
        self._thread.check_process()  # a lock may be held for ever in a fork
        work = getattr(self._broker, operation)(*arguments)
        if operation in FROM_ANY_THREAD:
            return _at_once(work)
        return self._thread.call(work)

    def kill(self) -> None:
        """End the broker as SIGKILL would."""
        self._thread.resume()
        self._thread.call(self._broker.kill())

    def pause(self) -> None:
        """Stop its thread."""
        self._thread.pause()

    def resume(self) -> None:
        """Let its thread go on."""
        self._thread.resume()

    def close(self) -> None:
        """End the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._thread.close()
            unwatch()


def thread_engine(settings: BrokerSettings) -> ThreadEngine:
    """An engine for a broker that is alone."""
    return ThreadEngine(settings, Surroundings(LogLines(), TurnedTime()))


def _at_once(work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - see Engine
    """Result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")
