"""The log lines of one broker, although all brokers of a process log through the same loggers.

The owner of a line is in the context in which it is logged: every task and callback of a broker
runs in one that descends from its start, and so do its threads. While an embedded broker runs, the
loggers of our packages pass INFO and above to a handler that sorts the lines; other handlers get
the same as without it.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import deque
from typing import Final

import broker
import compiled
import config
import controller
import coordinator
import protocol
import storage
from broker.node.log_lines import LineFormatter

LINES_KEPT: Final = 2_000
"""Of one broker: the newest. Fixed: a report of a failed test is read by a person."""

FORMAT: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

_PACKAGES = (broker, compiled, config, controller, coordinator, protocol, storage)


class LogLines:
    """Log lines of one broker; any thread may add and read."""

    def __init__(self, name: str = "") -> None:
        """`name` stands in front of each line, for one of several brokers."""
        self._prefix = f"{name} | " if name else ""
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self.is_muted = False
        """True if lines are dropped, as while its broker is being killed."""

    def add(self, line: str) -> None:
        """Keep a line."""
        self._lines.append(f"{self._prefix}{line}")

    def __call__(self) -> list[str]:
        """The lines, oldest first."""
        return list(self._lines)


OWNER: Final[contextvars.ContextVar[LogLines | None]] = contextvars.ContextVar(
    "embedded broker", default=None
)
"""Owner of the lines logged in this context."""


class _Sorter(logging.Handler):
    """Gives lines to their broker, and all others of them to whom they would have gone.

    It is the handler of a logger that is put between ours and the one above, and which alone does
    not propagate. Ours still does: to loggers that do not, pytest adds its own handlers.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self._level = logger.level
        self._propagated = logger.propagate
        self._above = logger.parent
        self._between = logging.Logger(logger.name)  # noqa: LOG001 - nobody shall find it by name
        self._between.propagate = False
        self._between.addHandler(self)
        self.setFormatter(LineFormatter(FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Sort one line."""
        owner = OWNER.get()
        if owner is not None:
            if owner.is_muted:
                return
            owner.add(self.format(record))
        if self._propagated and self._above is not None:
            least = self._level or self._above.getEffectiveLevel()
            if record.levelno >= least:
                self._above.callHandlers(record)

    def install(self) -> None:
        """Begin to sort."""
        is_quiet = self._logger.getEffectiveLevel() > logging.INFO
        self._logger.parent = self._between
        self._logger.propagate = True
        self._logger.setLevel(logging.INFO if is_quiet else self._level)
        if not is_quiet and self._above is not None:
            self._between.setLevel(self._above.getEffectiveLevel())

    def remove(self) -> None:
        """Leave the logger as it was found."""
        self._logger.parent = self._above
        self._logger.propagate = self._propagated
        self._logger.setLevel(self._level)


_lock = threading.Lock()
_sorters: list[_Sorter] = []
_watchers = 0


def watch() -> None:
    """Have lines sorted from now on, until `unwatch` was called as often."""
    global _watchers  # noqa: PLW0603 - loggers are of the process, and so is who has changed them
    with _lock:
        _watchers += 1
        if _watchers == 1:
            names = (package.__name__ for package in _PACKAGES)
            _sorters.extend(_Sorter(logging.getLogger(name)) for name in names)
            for sorter in _sorters:
                sorter.install()


def unwatch() -> None:
    """The counterpart of `watch`."""
    global _watchers  # noqa: PLW0603 - as in `watch`
    with _lock:
        _watchers -= 1
        if not _watchers:
            for sorter in _sorters:
                sorter.remove()
            _sorters.clear()
