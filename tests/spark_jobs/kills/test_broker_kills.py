"""The broker is killed under a job and comes back with its data: what the job wrote is exact."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.spark_jobs.kills.exact_jobs import BATCHES, EXACT_JOBS, Setting
from tests.spark_jobs.kills.job_process import RUN_SECONDS
from tests.spark_jobs.kills.killing import Moment, Stage, drawn_moments, run_through_broker_kills
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.broker_process import BrokerProcess

IMPATIENT = {
    "default.api.timeout.ms": "4000",
    "request.timeout.ms": "2000",
    "delivery.timeout.ms": "4000",
    "max.block.ms": "4000",
}
LONG_DOWN_SECONDS = 60.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Start a broker that only these tests use, for it dies."""
    start = apache_4 if os.environ.get("AGAINST") == "apache" else ours
    broker = start(tmp_path_factory.mktemp("mortal"))
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def setting(
    broker: BrokerProcess, spark: SparkSession, new_name: Callable[[str], str], tmp_path: Path
) -> Setting:
    """Return a topic and a directory of the test's own."""
    return Setting(broker.bootstrap, new_name("mortal"), tmp_path, spark)


@pytest.mark.timeout(2 * RUN_SECONDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", EXACT_JOBS)
def test_a_job_is_exact_after_the_broker_was_killed(
    name: str, seed: int, broker: BrokerProcess, setting: Setting
) -> None:
    EXACT_JOBS[name].produce(setting)
    job = EXACT_JOBS[name].job(setting)

    moments = drawn_moments(seed, job.named_queries(), BATCHES)
    ordeal = run_through_broker_kills(job, broker, moments)

    assert ordeal.kills
    EXACT_JOBS[name].check(setting)


@pytest.mark.timeout(2 * RUN_SECONDS)
def test_a_job_that_gives_up_says_so_in_a_line_and_is_exact_when_run_again(
    broker: BrokerProcess, setting: Setting
) -> None:
    patience = [word for pair in IMPATIENT.items() for word in ("--kafka", "=".join(pair))]
    setting = setting.started_with(flags=patience)
    EXACT_JOBS["route"].produce(setting)
    job = EXACT_JOBS["route"].job(setting)

    moments = [Moment("route", 1, Stage.PLANNED)]
    ordeal = run_through_broker_kills(job, broker, moments, down=LONG_DOWN_SECONDS)

    assert len(ordeal.failures) == 1
    EXACT_JOBS["route"].check(setting)
