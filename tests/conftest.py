"""What every test is held to: nobody may block an event loop, and hypothesis takes its time.

`make test` runs two processes of pytest. A file's tests stay in one of them, for they share what
its fixtures start; and so do all tests that run Spark, of which one at a time is plenty.
"""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# The machine that runs tests is shared, so hypothesis gets no deadline per example.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# In production the bound is 10 ms. Under coverage, with codecs compiled on first use, this is what
# tells a mistake from a slow test; it counts the thread's own CPU time, not its neighbours'.
LONGEST_CALLBACK_SECONDS = 0.5

SPARK_TESTS = Path(__file__).parent / "spark_jobs"


@pytest.hookimpl(tryfirst=True)  # before xdist puts the groups into the names
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests must run in the same process."""
    for item in items:
        has_spark = SPARK_TESTS in item.path.parents or item.get_closest_marker("spark")
        item.add_marker(pytest.mark.xdist_group("spark" if has_spark else str(item.path)))


class _CollectorClock:
    """Time spent looking for garbage cycles: among the objects of thousands of tests, long."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __call__(self, phase: str, _: object) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.seconds += time.thread_time() - self._began


@pytest.fixture(autouse=True)
def _loop_is_never_blocked(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test in which one callback kept an asyncio loop busy for too long."""
    blocked: list[str] = []
    run = asyncio.Handle._run
    collecting = _CollectorClock()

    def timed_run(handle: asyncio.Handle) -> None:
        begin = time.thread_time() - collecting.seconds
        run(handle)
        seconds = time.thread_time() - collecting.seconds - begin
        if seconds > LONGEST_CALLBACK_SECONDS:
            blocked.append(f"{seconds:.3f} s in {handle!r}")

    monkeypatch.setattr(asyncio.Handle, "_run", timed_run)
    gc.callbacks.append(collecting)
    yield
    gc.callbacks.remove(collecting)
    if blocked and request.node.get_closest_marker("bench") is None:
        pytest.fail("the event loop was blocked: " + "; ".join(blocked))
