"""Settings of Kafka clients reach every client that a job has, so that secured brokers work."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_jobs.jobs import archive, route
from spark_jobs.jobs.archive import ArchiveOptions
from spark_jobs.jobs.backfill import Range, read_range
from spark_jobs.jobs.produce_flights import ProduceOptions, produce
from spark_jobs.jobs.report import ReportOptions, gather
from spark_jobs.jobs.route import RouteOptions
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.data.month import MONTH
from tests.spark_jobs.kafka.tapped_link import (
    CREATE_TOPICS,
    FETCH,
    LIST_OFFSETS,
    PRODUCE,
    TappedLink,
)
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ours import ours
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.brokers.broker_process import BrokerProcess

ID = "known-to-the-broker"
DAMAGED = 44
JOB_TIMEOUT_SECONDS = 600


@pytest.fixture
def link(tmp_path: Path) -> Iterator[TappedLink]:
    """Start a broker that clients reach by a link only, which sees all that they ask."""
    port = free_port()
    tapped = TappedLink(port)
    advertised = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{tapped.port}"}
    broker = ours(tmp_path / "broker", advertised, port=port)
    broker.start()
    try:
        yield tapped
    finally:
        broker.stop()
        tapped.close()


@pytest.mark.slow
def test_every_client_of_a_job_has_the_settings(
    link: TappedLink, spark: SparkSession, tmp_path: Path
) -> None:
    servers = f"127.0.0.1:{link.port}"
    client = {"client.id": ID}
    produced = produce(
        ProduceOptions(
            bootstrap_servers=servers, months=(MONTH,), damaged=DAMAGED, partitions=2, client=client
        )
    )
    assert produced.acknowledged == produced.lines
    assert _clients(link) == {ID}
    assert {PRODUCE, CREATE_TOPICS} <= set(link.clients)

    link.clients.clear()
    options = RouteOptions(
        bootstrap_servers=servers, kafka=client, once=True, checkpoint=tmp_path / "checkpoint"
    )
    assert run_to_end(route.start(spark, options)) == {"route": produced.lines}
    assert {PRODUCE, FETCH, LIST_OFFSETS, CREATE_TOPICS} <= set(link.clients)
    assert _clients(link) == {ID}

    link.clients.clear()
    report = ReportOptions(bootstrap_servers=servers, kafka=client)
    assert gather(spark, report).rejected == DAMAGED
    assert {FETCH, LIST_OFFSETS} <= set(link.clients)
    assert _clients(link) == {ID}

    link.clients.clear()
    archived = ArchiveOptions(
        bootstrap_servers=servers,
        kafka={f"kafka.{key}": value for key, value in client.items()},
        rejects_topic="archive.rejected",
        directory=tmp_path / "archive",
    )
    records = read_range(spark, archived, Range("flights", {0: 0, 1: 0}, {0: 40, 1: 50}))
    archive.take(spark, records, archived)
    assert {FETCH, CREATE_TOPICS} <= set(link.clients)
    assert _clients(link) == {ID}


def _clients(link: TappedLink) -> set[str]:
    return set().union(*link.clients.values())


USER, PASSWORD = "alice", "alice's secret"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
"""Apache Kafka's own: names and passwords as they are."""


@pytest.fixture(params=[ours, apache_4], ids=["ours", "apache"])
def secured(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Start a broker with a listener that wants a password; give its address."""
    plain, secured = free_port(), free_port()
    jaas = f'{MODULE} required user_{USER}="{PASSWORD}";'
    broker: BrokerProcess = request.param(
        tmp_path / "secured",
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{secured}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
        },
        port=plain,
    )
    broker.start()
    try:
        yield f"127.0.0.1:{secured}"
    finally:
        broker.stop()


def _job(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spark_jobs", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=JOB_TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.java
@pytest.mark.timeout(3 * JOB_TIMEOUT_SECONDS)
def test_jobs_work_on_a_broker_that_wants_a_password_and_say_when_it_is_wrong(
    secured: str, tmp_path: Path
) -> None:
    servers = secured
    jaas = f'{MODULE} required username="{USER}" password="{PASSWORD}";'
    both = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN")
    at = ("--bootstrap-servers", servers)
    patience = ("default.api.timeout.ms=120000", "request.timeout.ms=60000")
    spark = (*at, *(word for setting in (*both, *patience) for word in ("--kafka", setting)))
    spark = (*spark, "--spark", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1")
    right = (*spark, "--kafka", f"sasl.jaas.config={jaas}")
    client = (*both, f"sasl.username={USER}", f"sasl.password={PASSWORD}")
    made = _job(
        "produce_flights",
        *(*at, "--months", str(MONTH), "--damaged", str(DAMAGED), "--partitions", "2"),
        *(word for setting in client for word in ("--client", setting)),
    )
    assert made.returncode == 0, made.stderr
    places = ("--checkpoint", str(tmp_path / "checkpoint"))
    routed = _job("route", *right, *places, "--once")
    assert routed.returncode == 0, routed.stderr[-2000:]
    again = _job("backfill", "route", *right, "--to-offset", "100")
    assert again.returncode == 0, again.stderr[-2000:]
    assert "taken 200 offsets" in again.stdout
    page = tmp_path / "page.html"
    report = _job("report", *right, "--output", str(page))
    assert report.returncode == 0, report.stderr[-2000:]
    assert page.exists()
    wrong = _job(
        *("route", *spark, "--kafka", f"sasl.jaas.config={jaas.replace(PASSWORD, 'guess')}"),
        *(*places, "--once"),
    )
    assert wrong.returncode == 1
    assert wrong.stderr.startswith(f"error: {servers}: SaslAuthenticationException: ")
    assert wrong.stderr.count("\n") == 1
