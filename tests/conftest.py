"""What every test is held to: nobody may block an event loop, and hypothesis takes its time.

`make test` runs two processes of pytest. A file's tests stay in one of them, for they share what
its fixtures start; and so do all tests that run Spark, of which one at a time is plenty.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.remote import Producer

# The machine that runs tests is shared, so hypothesis gets no deadline per example.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# In production the bound is 10 ms. Under coverage, with codecs compiled on first use, this is what
# tells a mistake from a slow test; it counts the thread's own CPU time, not its neighbours'.
LONGEST_CALLBACK_SECONDS = 0.5


class _FileByFile(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Deals tests out to processes by file, and all that run Spark to one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if "spark" in file or "pipeline" in file else file


@pytest.hookimpl(optionalhook=True)  # for runs without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _FileByFile:
    """Have `make test` deal tests out as said above."""
    return _FileByFile(config, log)


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
