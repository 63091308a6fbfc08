"""A test that fails leaves nothing to the next one, and what it would have left is its own warning.

A plugin of pytest. An exception holds the frames it came through, and pytest holds the exception
until the next test runs. Only then are the failed test's sockets, loops and processes collected,
whose warnings, which are errors here, fail a test that has nothing to do with them.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING

import pytest
from _pytest.threadexception import collect_thread_exception
from _pytest.unraisableexception import collect_unraisable

if TYPE_CHECKING:
    from collections.abc import Generator

THREAD_SECONDS = 5.0
"""For threads that end by themselves, as those do whose socket is closed."""

_EXCEPTIONS = pytest.StashKey[list[pytest.ExceptionInfo[BaseException]]]()
_THREADS = pytest.StashKey[set[threading.Thread]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Note which threads there are: those of fixtures, which end them."""
    item.stash[_THREADS] = set(threading.enumerate())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Hold what a phase has raised until the test is over, so that all of it goes at once."""
    if call.excinfo is not None:
        item.stash.setdefault(_EXCEPTIONS, []).append(call.excinfo)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End what a test has left that raised, and list it with the warnings of that test."""
    outcome = yield
    if item.stash.get(_EXCEPTIONS, None):
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always")
            _release(item)
        for warning in left:
            if isinstance(warning.source, subprocess.Popen):
                warning.source.kill()
                warning.source.wait()
            item.config.hook.pytest_warning_recorded.call_historic(
                kwargs={
                    "warning_message": warning,
                    "when": "runtest",
                    "nodeid": item.nodeid,
                    "location": None,
                }
            )
    return outcome


def _release(item: pytest.Item) -> None:
    """Collect everything that only the exceptions held; each leftover warns of itself."""
    del item.stash[_EXCEPTIONS]
    for name in ("last_exc", "last_type", "last_value", "last_traceback"):
        with contextlib.suppress(AttributeError):
            delattr(sys, name)
    gc.collect()
    for thread in _still_running(item.stash.get(_THREADS, None)):
        warnings.warn(f"{thread} is still running", ResourceWarning, stacklevel=1)
    gc.collect()
    collect_unraisable(item.config)
    collect_thread_exception(item.config)


def _still_running(before: set[threading.Thread] | None) -> list[threading.Thread]:
    """Return the threads begun since the test's body began that do not end now."""
    begun = set() if before is None else set(threading.enumerate()) - before
    deadline = time.monotonic() + THREAD_SECONDS
    for thread in begun:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [thread for thread in begun if thread.is_alive()]
