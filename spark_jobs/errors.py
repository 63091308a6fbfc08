"""What a person reads when a job cannot go on: one line, and an exit code."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_FAILED = 1
EXIT_BAD_OPTION = 2


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
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return job()
    except JobError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_FAILED
