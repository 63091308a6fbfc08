"""Rules for every test: no blocked event loop, and time for hypothesis.

`make test` runs four processes of pytest, for tests wait as much as they compute. A file's tests
stay in one of them, for they share what its fixtures start; so do all files that share a Spark
session, of which there are two. What takes long is begun first, so that nobody waits for one file
in the end.

What comes over the network is fetched before the first test. Unit tests are those of the packages
that start no process and are not slow: `make unit` runs them, and one that starts a process fails.

With a compiled build beside the sources the tests are of that one, as the first line says.
"""

from __future__ import annotations

from compiled.activation import activate, activation

activate()  # before anything is imported that it may replace

import functools
import gc
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.support import downloads
from tests.support.jars import JarsUnavailableError
from tests.support.loop_watch import LoopWatch
from tests.support.spark_session import SPARK_IN_MAKE_TEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xdist.remote import Producer

PACKAGES = (
    *(
        "broker",
        "compiled",
        "config",
        "controller",
        "coordinator",
        "protocol",
        "spark_jobs",
        "storage",
    ),
)
pytest_plugins = [
    "tests.support.plugins.left_behind",
    "tests.support.plugins.left_out",
    "tests.support.plugins.timed_out",
    "tests.support.seeds",
]

NO_UNIT_TEST = ("java", "process", "slow", "spark")
"""Markers of tests that are none, though they lie beside unit tests."""

# The machine that runs tests is shared, so hypothesis gets no deadline, for examples or drawing.
settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared-machine")

# A shell has what it runs in the background ignore Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WATCH = LoopWatch()
OTHERS_LOOPS = ("bench", "interop")
"""Markers of tests whose event loops are not a broker's."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Spare the garbage collector what stays for good: ten thousand tests, and their modules.

    It walked over all of that a dozen times meanwhile, and for half a second each time that a test
    had it collect.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_report_header() -> str:
    """Say what is tested."""
    return f"compiled: {activation().answer} ({activation().reason})"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fetch what tests need, once for all processes; a test that lacks it says so itself."""
    if hasattr(session.config, "workerinput"):
        return
    try:
        downloads.fetch(lambda what: print(what, file=sys.stderr))
    except JarsUnavailableError as error:
        print(f"downloads: {error}", file=sys.stderr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the unit tests; the hooks of conftest files further down have been called before."""
    places = {Path(__file__).parent / package for package in PACKAGES}
    for item in items:
        if activation().is_compiled and item.get_closest_marker("interpreted") is not None:
            item.add_marker(pytest.mark.skip(reason="needs modules that are not compiled"))
        if places.isdisjoint(item.path.parents):
            continue
        if not any(item.get_closest_marker(name) for name in NO_UNIT_TEST):
            item.add_marker(pytest.mark.unit)
    items.sort(key=_length)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no unit test start a process, its fixtures included."""
    with pytest.MonkeyPatch.context() as patched:
        if item.get_closest_marker("unit") is not None:
            patched.setattr(subprocess.Popen, "__init__", _refuse_to_start)
        return (yield)


def _refuse_to_start(*_: object, **__: object) -> NoReturn:
    pytest.fail("a unit test starts no process: mark this one `process`")


@functools.cache
def _shares_spark(file: str) -> bool:
    """Say whether tests of a file take the Spark session that tests share."""
    return "spark: SparkSession" in (Path(__file__).parents[1] / file).read_text(encoding="utf-8")


def _length(item: pytest.Item) -> int:
    """Order what shares Spark before what starts processes of its own, and unit tests last."""
    if _shares_spark(item.nodeid.partition("::")[0]):
        return 0
    return 2 if item.get_closest_marker("unit") is not None else 1


class _FileByFile(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Deals tests out to processes by file, and all that share Spark to two of them."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not _shares_spark(file):
            return file
        is_quick = file.rpartition("/")[2] in SPARK_IN_MAKE_TEST
        return "spark-0" if is_quick else f"spark-{zlib.crc32(file.encode()) % 2}"


@pytest.hookimpl(optionalhook=True)  # for runs without xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _FileByFile:
    """Have `make test` deal tests out as said above."""
    config.option.loadscopereorder = False  # which would begin with the file of most tests
    return _FileByFile(config, log)


@pytest.fixture(autouse=True, scope="session")
def _excused_functions() -> Iterator[None]:
    WATCH.excuse()
    yield
    WATCH.count_again()


@pytest.fixture(autouse=True)
def _loop_is_never_held_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which one callback held up an event loop for too long.

    In tests that drive other processes the loops are those of clients, and may wait.
    """
    WATCH.begin()
    yield
    WATCH.end()
    if WATCH.held and not any(map(request.node.get_closest_marker, OTHERS_LOOPS)):
        pytest.fail("the event loop was held up: " + "; ".join(WATCH.held))
