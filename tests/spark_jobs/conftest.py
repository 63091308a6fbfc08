"""One broker, one Spark session and one month of flights, shared by all tests of this directory."""

from __future__ import annotations

import logging
import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.jobs.produce_flights import Outcome, ProduceOptions, produce
from spark_jobs.options import SparkOptions
from tests.spark_jobs.data.month import DAMAGED, MONTH
from tests.spark_jobs.registry.registry_process import RegistryProcess
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.java_command import LONG_TEST_JVM
from tests.support.spark_session import (
    SPARK_IN_CI,
    SPARK_IN_MAKE_TEST,
    end_spark,
    same_signal_handlers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

TEST_TIMEOUT_SECONDS = 900
TOPIC = "march"
PYSPARK_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers of errors, which PySpark keeps from the root logger."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark or a broker; give all enough time, if they name none.

    Tests on Spark are slow, but for those of one file. This hook comes after that of `left_out`:
    CI runs those of some more files among the slow tests.
    """
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_SECONDS))
            fixtures = item.fixturenames if isinstance(item, pytest.Function) else []
            if "servers" in fixtures:
                item.add_marker(pytest.mark.process)
            if "spark" in fixtures:
                item.add_marker(pytest.mark.spark)
                if item.path.name not in SPARK_IN_MAKE_TEST:
                    item.add_marker(pytest.mark.slow)
                    if item.path.name not in SPARK_IN_CI:
                        item.add_marker(pytest.mark.manual)
                # py4j leaves closing the sockets to its JVM to the garbage collector.
                for category in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                    item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Iterator[None]:
    """Let PySpark's loggers propagate again.

    pytest attaches its handler to each logger that does not, and a logger of PySpark makes each of
    its handlers write JSON, for the tests that follow as well.
    """
    try:
        return (yield)
    finally:
        for name in PYSPARK_LOGGERS:
            if name in logging.root.manager.loggerDict:
                logging.getLogger(name).propagate = True


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a broker: ours, or with AGAINST=apache in the environment Apache's."""
    start = apache_4 if os.environ.get("AGAINST") == "apache" else ours
    broker = start(tmp_path_factory.mktemp("broker"))
    broker.start()
    try:
        yield broker.bootstrap
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def registries(
    servers: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RegistryProcess, RegistryProcess]]:
    """Start two schema registries on one topic; each test has subjects of its own in them."""
    directory = tmp_path_factory.mktemp("registries")
    both = (RegistryProcess(servers, directory), RegistryProcess(servers, directory))
    for registry in both:
        registry.start()
    yield both
    assert [registry.stop() for registry in both] == [0, 0]


@pytest.fixture(scope="session")
def produced(servers: str) -> Outcome:
    """Produce the month to the topic `march`."""
    return produce(
        ProduceOptions(
            bootstrap_servers=servers, topic=TOPIC, partitions=3, months=(MONTH,), damaged=DAMAGED
        )
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark, with Java's first compiler only: tests compile much and run it once.

    In the locale C, which must not change what is read.
    """
    from spark_jobs.spark.spark_session import start_spark

    options = SparkOptions(spark_log=tmp_path_factory.mktemp("spark") / "spark.log")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (LONG_TEST_JVM | {"LC_ALL": "C"}).items():
            environment.setenv(name, value)
        with same_signal_handlers():
            session = start_spark(options, "tests")
    yield session
    end_spark(session)


@pytest.fixture(scope="session")
def new_name() -> Callable[[str], str]:
    """Give names that no two tests share."""
    numbers = count(1)
    return lambda stem: f"{stem}-{next(numbers)}"
