"""A test that times out affects no other: its fixtures are set up again for the next one.

A plugin of pytest. A time-out ends a test anywhere: in a fixture that many tests share, whose
failure pytest would raise again for each of them; or in a call to Spark, a tool's JVM or a cluster,
of which nobody knows then what state they are in. And it is raised again each minute until it gets
through: what a callback raises, asyncio logs, and the test would wait for ever.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

WORDS = "from pytest-timeout"
"""Text in the failure of a test that timed out."""

AGAIN_SECONDS = 60.0
"""Longer than what a test does on its way out."""

_HAS_TIMED_OUT = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer() -> Generator[None, Any, Any]:
    """Repeat the time-out; pytest-timeout ends that when the test has failed or is over."""
    is_set = yield
    first, _ = signal.getitimer(signal.ITIMER_REAL)
    if first > 0:  # its other method is a thread that ends the process
        signal.setitimer(signal.ITIMER_REAL, first, AGAIN_SECONDS)
    return is_set


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test has timed out, in whichever of its phases."""
    report = yield
    if call.excinfo is not None and WORDS in report.longreprtext:
        item.stash[_HAS_TIMED_OUT] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """End the fixtures of a test that has timed out, and with each those that build on it."""
    result = yield
    if isinstance(item, pytest.Function) and item.stash.get(_HAS_TIMED_OUT, False):
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for fixture in definitions:
                if fixture.baseid:  # pytest's own, and those of its plugins, are of no place
                    fixture.finish(cast("Any", item._request))  # named in what it raises
    return result
