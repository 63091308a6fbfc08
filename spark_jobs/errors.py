"""What a person reads when a job cannot go on: one line, and an exit code."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

EXIT_FAILED = 1
EXIT_BAD_OPTION = 2
EXIT_BY_SIGNAL = 128
"""What shells add the signal's number to."""


class JobError(Exception):
    """A job cannot go on; the message is one line that says why and what to do."""

    exit_code = EXIT_FAILED


class BadOptionError(JobError):
    """An option is missing, unknown or has an impossible value."""

    exit_code = EXIT_BAD_OPTION


def exit_code_of(job: Callable[[], int]) -> int:
    """Run a job and return its exit code, printing a `JobError` as one line.

    SIGTERM ends it as Ctrl-C does: whatever the job started is stopped first.
    """
    # py4j logs an interrupted call with its stack on the root logger; one line is enough here.
    logging.getLogger().addHandler(logging.NullHandler())
    _signals.clear()
    take_signals()
    try:
        return job()
    except JobError as error:
        if _signals:
            return _interrupted()
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except Exception:
        if _signals:  # what was interrupted complained in its own words
            return _interrupted()
        raise


def take_signals() -> None:
    """Have Ctrl-C and SIGTERM end the job; Spark, when it starts, takes Ctrl-C for itself.

    A signal that came already and was lost ends it now: what a handler raises while Python starts
    a process is printed and dropped.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
    if _signals:
        raise KeyboardInterrupt


def interrupt(signal_number: int) -> NoReturn:
    """End the job as the signal does that was taken otherwise."""
    _signals.append(signal_number)
    raise KeyboardInterrupt


_signals: list[int] = []
"""Those that came while the job ran."""


def _interrupt(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    interrupt(signal_number)


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return EXIT_BY_SIGNAL + (_signals[0] if _signals else signal.SIGINT)
