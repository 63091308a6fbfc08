"""A stream job under a steady load for minutes: generator, broker and Spark on this machine.

The job is a process, as a person starts it; on request it runs on a standalone Spark cluster of two
workers. Another replays events that were made before (`replaying`). What the topic holds is asked
of the broker, what the job has taken is read from its checkpoint: offsets of the last batch that is
committed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.visitors.visits import Site
from tests.benchmarks.measurement.rows import TOPIC_TIMEOUT_SECONDS
from tests.benchmarks.spark.pipeline_jobs import PARTITIONS, PipelineBenchError
from tests.benchmarks.spark.pipeline_load import Sample
from tests.benchmarks.spark.replaying import record
from tests.spark_jobs.kills.job_process import Job, running
from tests.support.jars import REPOSITORY
from tests.support.processes.children import DIES_WITH_PARENT
from tests.support.processes.process_use import group_members, use_of
from tests.support.processes.spark_cluster import SparkCluster, WorkerSize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.spark_jobs.kills.job_process import JobProcess
    from tests.support.brokers.broker_process import BrokerProcess

START_SECONDS = 300.0
POLL_SECONDS = 0.1
SPARE_SECONDS = 60.0
"""The generator has events for so much longer than a run: it must not end before."""

KEEPING_TABLES = ("activity", "aggregate")
TOPIC_CONFIG = {"retention.ms": "-1", "segment.bytes": str(256 << 20)}
"""The events' times are long ago."""

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Load:
    """Rate and duration of the production, and the job that takes it in."""

    rate: int = 20_000
    """Events a second."""

    pace: float = 100.0
    """Events a second of event time: so few that sessions and windows end within seconds."""

    seconds: float = 600.0
    sample_seconds: float = 10.0
    job: str = "activity"
    trigger_seconds: float = 10.0
    flags: tuple[str, ...] = ()
    """More for the job's command line."""

    on_cluster: bool = False
    """The job runs on a Spark cluster of processes, instead of inside its driver."""


def sustain(broker: BrokerProcess, load: Load, directory: Path) -> list[Sample]:
    """Run the load against a serving broker, and return samples of it."""
    topic = f"sustained-{load.job}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    new_topic = NewTopic(topic, PARTITIONS, 1, config=TOPIC_CONFIG)
    admin.create_topics([new_topic])[topic].result(TOPIC_TIMEOUT_SECONDS)
    with ExitStack() as stack:
        events = _events(load, directory)
        cluster = _cluster(directory) if load.on_cluster else None
        if cluster is not None:
            stack.enter_context(cluster)
        job = _job(broker, load, topic, directory, cluster)
        driver = stack.enter_context(running(job))
        _wait_until_started(job, driver)
        generator = stack.enter_context(_generating(broker, load, topic, events))
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "lag", "log_level": 0}
        consumer = Consumer(settings)
        stack.callback(consumer.close)
        run = _Run(broker, job, driver, generator, cluster, consumer, topic)
        run.wait_for_events()
        samples = run.samples(load)
        os.kill(driver.process.pid, signal.SIGTERM)
        if driver.wait() != 0:
            raise PipelineBenchError(f"{load.job} does not stop cleanly:\n{driver.said()[-2000:]}")
    return samples


def _job(
    broker: BrokerProcess, load: Load, topic: str, directory: Path, cluster: SparkCluster | None
) -> Job:
    arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", topic]
    arguments += ["--set", f"prefix={topic}", *load.flags]
    arguments += ["--trigger-seconds", str(load.trigger_seconds)]
    arguments += ["--metrics", str(directory / "metrics.jsonl")]
    if load.job in KEEPING_TABLES:
        arguments += ["--table", str(directory / "tables")]
    if cluster is not None:
        arguments += ["--master", cluster.url, "--spark", "spark.executor.memory=1g"]
    return Job(load.job, tuple(arguments), directory / "checkpoint", environment={})


def _cluster(directory: Path) -> SparkCluster:
    return SparkCluster(directory / "spark", size=WorkerSize(environment={}))


def _wait_until_started(job: Job, driver: JobProcess) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not list(job.checkpoint.glob("*/metadata")):
        if driver.poll() is not None or time.monotonic() > deadline:
            raise PipelineBenchError(f"{job.name} did not start:\n{driver.said()[-2000:]}")
        time.sleep(POLL_SECONDS)


def _events(load: Load, directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    events = directory / "events"
    count = int(load.rate * (load.seconds + SPARE_SECONDS))
    record(Site(pace=load.pace), count, PARTITIONS, events)
    return events


@contextmanager
def _generating(
    broker: BrokerProcess, load: Load, topic: str, events: Path
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.benchmarks.spark.replaying", str(events)]
    command += [broker.bootstrap, topic, str(load.rate)]
    with events.with_name("generator.out").open("wb") as output:
        process = subprocess.Popen(
            [*DIES_WITH_PARENT, *command],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True, slots=True)
class _Run:
    """All processes of a run, and what they have done so far."""

    broker: BrokerProcess
    job: Job
    driver: JobProcess
    generator: subprocess.Popen[bytes]
    cluster: SparkCluster | None
    consumer: Consumer
    """Asks how much the topic holds; reads nothing."""
    topic: str

    def wait_for_events(self) -> None:
        """Wait until the generator has begun."""
        deadline = time.monotonic() + START_SECONDS
        while not self._produced():
            if self.generator.poll() is not None or time.monotonic() > deadline:
                raise PipelineBenchError("the generator does not produce")
            time.sleep(POLL_SECONDS)

    def samples(self, load: Load) -> list[Sample]:
        """Look again and again until the time is over; all must run on meanwhile."""
        begin = time.monotonic()
        samples = [self._sample(0.0)]
        while samples[-1].seconds < load.seconds:
            time.sleep(max(0.0, begin + len(samples) * load.sample_seconds - time.monotonic()))
            if self.driver.poll() is not None:
                raise PipelineBenchError(f"the job ended:\n{self.driver.said()[-2000:]}")
            if self.generator.poll() is not None:
                raise PipelineBenchError("the generator ended")
            samples.append(self._sample(time.monotonic() - begin))
        return samples

    def _sample(self, seconds: float) -> Sample:
        job = use_of(group_members(self.driver.process.pid))
        if self.cluster is not None:
            job += use_of(self.cluster.processes())
        return Sample(
            seconds=seconds,
            produced=self._produced(),
            taken=taken(self.job, self.topic),
            broker_cpu_seconds=self.broker.cpu_seconds(),
            job_cpu_seconds=job.cpu_seconds,
            producer_cpu_seconds=use_of([self.generator.pid]).cpu_seconds,
            broker_megabytes=self.broker.resident_bytes() / MEGABYTE,
            job_megabytes=job.resident_bytes / MEGABYTE,
        )

    def _produced(self) -> int:
        partitions = [TopicPartition(self.topic, number) for number in range(PARTITIONS)]
        ask = self.consumer.get_watermark_offsets
        return sum(int(ask(one, timeout=TOPIC_TIMEOUT_SECONDS)[1]) for one in partitions)


def taken(job: Job, topic: str) -> int:
    """Return how many records of a topic the query has committed that is furthest behind."""
    counts = []
    for directory in job.checkpoint.glob("*/offsets"):
        query = directory.parent.name
        planned, committed = job.planned(query), job.committed(query)
        reads = taken_by(directory / str(max(planned)), topic) if planned else None
        if reads is not None:
            counts.append(taken_by(directory / str(max(committed)), topic) if committed else 0)
    return min((count or 0 for count in counts), default=0)


def taken_by(offsets: Path, topic: str) -> int | None:
    """Sum up a topic's offsets in a file of a checkpoint; None when it reads another topic.

    The file has a line of JSON for each source of the query, behind one about the batch.
    """
    for line in offsets.read_text(encoding="utf-8").splitlines()[1:]:
        source = json.loads(line) if line.startswith("{") else {}
        if isinstance(source.get(topic), dict):
            return sum(int(offset) for offset in source[topic].values())
    return None
