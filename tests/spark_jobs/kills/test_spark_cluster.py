"""Jobs on a standalone Spark cluster of processes, whose executors and workers are killed."""

from __future__ import annotations

import sys
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, EXIT_FAILED
from spark_jobs.options import EXCLUDED_PACKAGES, PACKAGES
from tests.spark_jobs.data import days
from tests.spark_jobs.kills.exact_jobs import BATCHES, EXACT_JOBS, Setting
from tests.spark_jobs.kills.job_process import RUN_SECONDS, Job, run_job
from tests.spark_jobs.kills.killing import drawn_moments, run_through_strikes
from tests.support.brokers.broker_process import free_port
from tests.support.processes.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

WORKERS = 2
SEED_OF_WORKERS = 3
"""The executors of each job die under three seeds: by themselves twice, and with their worker."""

EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # Executors have these classes already; a copy of 30 MB would make each start slower.
    "spark.jars.excludes": "org.apache.hadoop:hadoop-client-runtime",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Start a cluster for all tests of this file."""
    with SparkCluster(tmp_path_factory.mktemp("cluster"), WORKERS) as running:
        yield running


@pytest.fixture
def setting(
    servers: str, spark: SparkSession, new_name: Callable[[str], str], tmp_path: Path
) -> Setting:
    """Return a topic and a directory of the test's own."""
    return Setting(servers, new_name("clustered"), tmp_path, spark)


def _as_module(cluster: SparkCluster, setting: Setting, _name: str) -> Setting:
    settings = [word for pair in EXECUTORS.items() for word in ("--spark", "=".join(pair))]
    return setting.started_with(flags=("--master", cluster.url, *settings))


def _submitted(cluster: SparkCluster, setting: Setting, name: str) -> Setting:
    command = str(Path(sys.executable).with_name("spark-submit"))
    settings = [word for pair in EXECUTORS.items() for word in ("--conf", "=".join(pair))]
    packages = ("--packages", ",".join(PACKAGES), "--exclude-packages", EXCLUDED_PACKAGES)
    where = ("--master", cluster.url, *packages, *settings)
    return setting.started_with(launcher=(command, *where, f"spark_jobs/jobs/{name}.py"))


@pytest.mark.parametrize(
    ("master", "code", "said"),
    [
        ("spark://127.0.0.1:{port}", EXIT_FAILED, "no Spark master listens at 127.0.0.1:{port}: "),
        ("spark://nowhere", EXIT_BAD_OPTION, "expected HOST:PORT, "),
    ],
)
def test_a_master_that_is_not_there_is_one_line_at_once(
    master: str, code: int, said: str, servers: str, tmp_path: Path
) -> None:
    port = free_port()
    flags = ("--bootstrap-servers", servers, "--master", master.format(port=port))
    outcome = run_job(Job("route", flags, tmp_path / "checkpoint"))
    assert outcome.returncode == code
    assert outcome.stdout.startswith(f"error: --master: {said.format(port=port)}")
    assert outcome.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(RUN_SECONDS)
def test_route_runs_on_a_cluster(cluster: SparkCluster, setting: Setting) -> None:
    setting = _as_module(cluster, setting, "route")
    EXACT_JOBS["route"].produce(setting)
    outcome = run_job(EXACT_JOBS["route"].job(setting), "--once")
    assert outcome.returncode == 0, outcome.stdout
    assert f"route: {len(days.lines()):,} records routed" in outcome.stdout
    EXACT_JOBS["route"].check(setting)


@pytest.mark.slow
@pytest.mark.timeout(2 * RUN_SECONDS)
@pytest.mark.parametrize(("seed", "start"), [(1, _as_module), (2, _submitted)])
@pytest.mark.parametrize("name", EXACT_JOBS)
def test_a_job_goes_on_by_itself_when_executors_are_killed(
    name: str,
    seed: int,
    start: Callable[[SparkCluster, Setting, str], Setting],
    cluster: SparkCluster,
    setting: Setting,
) -> None:
    setting = start(cluster, setting, name)
    EXACT_JOBS[name].produce(setting)
    job = EXACT_JOBS[name].job(setting)
    victims = cycle(range(WORKERS))
    killed: list[int] = []

    moments = drawn_moments(seed, job.named_queries(), BATCHES)
    ordeal = run_through_strikes(
        job, moments, lambda: killed.append(cluster.kill_executors(next(victims)))
    )

    assert sum(killed) > 0
    assert ordeal.failures == []
    EXACT_JOBS[name].check(setting)


@pytest.mark.slow
@pytest.mark.timeout(2 * RUN_SECONDS)
@pytest.mark.parametrize("name", EXACT_JOBS)
def test_a_job_goes_on_by_itself_when_a_worker_is_killed(
    name: str, cluster: SparkCluster, setting: Setting
) -> None:
    setting = _as_module(cluster, setting, name)
    EXACT_JOBS[name].produce(setting)
    job = EXACT_JOBS[name].job(setting)

    moments = drawn_moments(SEED_OF_WORKERS, job.named_queries(), BATCHES, kills=1)
    ordeal = run_through_strikes(job, moments, lambda: cluster.kill_worker(0))
    cluster.start_worker(0)

    assert ordeal.kills
    assert ordeal.failures == []
    EXACT_JOBS[name].check(setting)
