"""What becomes of a topic under a running job, and of a checkpoint under another job."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewPartitions

from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.jobs import enrich, route
from spark_jobs.jobs.enrich import EnrichOptions
from spark_jobs.jobs.route import RouteOptions
from spark_jobs.spark.streams import run_to_end, run_until_stopped
from tests.spark_jobs.data.month import FEED
from tests.spark_jobs.kafka.consuming import read_topic
from tests.spark_jobs.kafka.producing import Record, admin, create_topic, produce_records
from tests.support.brokers.ours import ours
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = 2
WAIT_SECONDS = 400
SMALL_FETCHES = {"max.partition.fetch.bytes": "10000", "max.poll.records": "10"}


class World:
    """A topic of flights, and the job that routes them."""

    def __init__(self, spark: SparkSession, servers: str, name: str, checkpoint: Path) -> None:
        self.spark = spark
        self.topic = name
        self.servers = servers
        self.options = RouteOptions(
            bootstrap_servers=servers,
            topic=name,
            set={"prefix": name},
            checkpoint=checkpoint,
            trigger_seconds=0,
        )
        self.admin = admin(servers)
        create_topic(servers, name, PARTITIONS)

    def start(self, **changes: object) -> StreamingQuery:
        """Start the job, to run until it is stopped."""
        [query] = route.start(self.spark, self.options.model_copy(update=changes))
        return query

    def run_once(self) -> int:
        """Let the job take in what is there; return how much that was."""
        options = self.options.model_copy(update={"once": True})
        return run_to_end(route.start(self.spark, options))[route.NAME]

    def produce(self, count: int, partition: int) -> None:
        """Produce flights to a partition."""
        lines = itertools.islice(FEED.lines(FEED.flights()), count)
        records = [Record(line.key, line.value, partition) for line in lines]
        produce_records(self.servers, self.topic, records)

    def truncate(self) -> None:
        """Delete all records of all partitions, as retention may."""
        places = [TopicPartition(self.topic, index, -1) for index in range(PARTITIONS)]
        for done in self.admin.delete_records(places).values():
            done.result()

    def routed(self) -> Counter[tuple[int, int]]:
        """Return how often each place in the topic is the source of a routed record."""
        found: Counter[tuple[int, int]] = Counter()
        for topic in self.options.targets().values():
            for record in read_topic(self.servers, topic):
                source = json.loads(record.value or b"")["source"]
                found[source["partition"], source["offset"]] += 1
        return found

    def failure(self, query: StreamingQuery) -> str:
        """Wait until the query has ended; return the job's line about it."""
        assert wait_until(lambda: not query.isActive, WAIT_SECONDS)
        with pytest.raises(JobError) as raised:
            run_until_stopped([query])
        assert "\n" not in str(raised.value)
        return str(raised.value)


@pytest.fixture
def world(
    spark: SparkSession, servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> Iterator[World]:
    yield World(spark, servers, new_name("faults"), tmp_path / "checkpoint")
    for query in spark.streams.active:
        query.stop()


@pytest.mark.slow
def test_a_topic_that_is_grown_is_read_from_the_first_record_of_each_new_partition(
    world: World,
) -> None:
    world.produce(30, 0)
    query = world.start()
    query.processAllAvailable()
    world.admin.create_partitions([NewPartitions(world.topic, 4)])[world.topic].result()
    for partition, count in ((3, 7), (2, 5), (0, 2)):
        world.produce(count, partition)
    query.processAllAvailable()
    query.stop()
    world.produce(3, 3)
    assert world.run_once() == 3
    counts = {0: 32, 2: 5, 3: 10}
    assert world.routed() == Counter(
        (partition, offset) for partition, count in counts.items() for offset in range(count)
    )


@pytest.mark.slow
def test_a_topic_that_is_deleted_ends_the_job_and_stays_deleted(world: World) -> None:
    world.produce(20, 1)
    query = world.start()
    query.processAllAvailable()
    world.admin.delete_topics([world.topic])[world.topic].result()
    failure = world.failure(query)
    assert failure.startswith("query route failed: ")
    assert failure.endswith(" - a topic of the query was deleted")
    assert len(world.routed()) == 20
    assert world.topic not in world.admin.list_topics(timeout=WAIT_SECONDS).topics
    with pytest.raises(JobError, match=f"there is no topic '{world.topic}' on"):
        world.start()


@pytest.mark.slow
def test_a_topic_made_anew_needs_another_checkpoint(world: World) -> None:
    world.produce(20, 1)
    assert world.run_once() == 20
    world.admin.delete_topics([world.topic])[world.topic].result()
    create_topic(world.servers, world.topic, PARTITIONS)
    world.produce(40, 1)
    with pytest.raises(BadOptionError, match=r"topic's id '.*', and here it is '.*': use another"):
        world.run_once()
    anew = world.options.checkpoint.with_name("anew")
    world.options = world.options.model_copy(update={"checkpoint": anew})
    assert world.run_once() == 40


def test_records_that_are_gone_before_they_were_read_end_a_running_job(world: World) -> None:
    for _ in range(30):  # batches of their own, of which the reader fetches a few ahead
        world.produce(50, 0)
    query = world.start(max_offsets_per_trigger=50, kafka=SMALL_FETCHES)
    assert wait_until(lambda: query.lastProgress is not None, WAIT_SECONDS)
    world.truncate()
    failure = world.failure(query)
    assert "the topic holds less than the checkpoint remembers" in failure
    assert "Use another --checkpoint" in failure


@pytest.mark.slow
def test_records_that_went_between_two_runs_end_the_second(world: World) -> None:
    world.produce(10, 0)
    assert world.run_once() == 10
    world.truncate()
    assert world.run_once() == 0, "all that went had been read"
    world.produce(10, 0)
    world.truncate()
    with pytest.raises(JobError, match="the topic holds less than the checkpoint remembers"):
        world.run_once()


def test_a_checkpoint_of_another_job_is_named(world: World, tmp_path: Path) -> None:
    world.run_once()
    checkpoint = tmp_path / "enrich"
    shutil.copytree(world.options.checkpoint / route.NAME, checkpoint / enrich.NAME)
    options = EnrichOptions(
        bootstrap_servers=world.servers,
        topic=world.topic,
        table_topic=world.topic,
        checkpoint=checkpoint,
    )
    with pytest.raises(
        BadOptionError,
        match=r"^--checkpoint: .* belongs to a query with job 'route', and here it is 'enrich'",
    ):
        enrich.start(world.spark, options)


@pytest.mark.slow
def test_a_checkpoint_of_another_topic_is_named(world: World, servers: str) -> None:
    world.run_once()
    create_topic(servers, f"{world.topic}-2")
    options = world.options.model_copy(update={"topic": f"{world.topic}-2"})
    with pytest.raises(BadOptionError, match=f"with topic '{world.topic}', and here it is"):
        route.start(world.spark, options)


@pytest.mark.slow
def test_a_checkpoint_of_another_broker_is_named(world: World, tmp_path: Path) -> None:
    world.run_once()
    other = ours(tmp_path / "other")
    other.start()
    try:
        create_topic(other.bootstrap, world.topic, PARTITIONS)
        options = world.options.model_copy(update={"bootstrap_servers": other.bootstrap})
        with pytest.raises(BadOptionError, match="belongs to a query with cluster '"):
            route.start(world.spark, options)
    finally:
        other.stop()


def test_a_damaged_claim_is_named(world: World) -> None:
    world.run_once()
    (world.options.checkpoint / route.NAME / "job.json").write_text("{")
    with pytest.raises(BadOptionError, match=r"^--checkpoint: .*job\.json is damaged: "):
        world.run_once()
