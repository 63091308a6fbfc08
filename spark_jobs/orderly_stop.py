"""Ending a loop of one's own when SIGTERM or Ctrl-C comes, after the work under way."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Give an event that is set when the process is asked to end; meant for the main thread."""
    stop = threading.Event()

    def request(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        stop.set()

    kept = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
