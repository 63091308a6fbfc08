"""Windows and sessions through kill -9 of the driver, at moments drawn from a seed.

The numbers are in topics and tables as if nothing had happened: nothing is lost, and nothing that
is added up was added twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark_jobs.data import website
from tests.spark_jobs.data.activity_results import check, of_tables, of_topics
from tests.spark_jobs.kafka.consuming import read_topic
from tests.spark_jobs.kills.exact_jobs import BATCHES, EXACT_JOBS, Setting
from tests.spark_jobs.kills.killing import drawn_moments, run_through_kills

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

SEEDS = (1, 2, 3)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def setting(
    servers: str, spark: SparkSession, new_name: Callable[[str], str], tmp_path: Path
) -> Setting:
    """Give a job a topic and a place of its own."""
    return Setting(servers, new_name("killed"), tmp_path, spark)


def _run_through_kills(setting: Setting, name: str, seed: int) -> None:
    EXACT_JOBS[name].produce(setting)
    job = EXACT_JOBS[name].job(setting)
    ordeal = run_through_kills(job, drawn_moments(seed, job.named_queries(), BATCHES))
    assert ordeal.unfinished, "a batch was under way when the driver died"
    EXACT_JOBS[name].check(setting)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_are_exact_after_the_driver_was_killed(setting: Setting, seed: int) -> None:
    _run_through_kills(setting, "aggregate", seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_and_what_is_added_up_are_exact_after_the_driver_was_killed(
    setting: Setting, seed: int
) -> None:
    _run_through_kills(setting, "activity", seed)
    events = website.valid_events(read_topic(setting.servers, setting.topic))
    check(of_tables(setting.place / "tables"), events)
    check(of_topics(setting.servers, setting.topic), events)
