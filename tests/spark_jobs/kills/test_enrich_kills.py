"""enrich, killed with SIGKILL while its table changes: each flight has one plane, whatever dies."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from itertools import count, cycle, islice
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark_jobs.data.month import FEED
from tests.spark_jobs.data.planes import plane_records, produce_table
from tests.spark_jobs.kafka.consuming import Ends, read_topic
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records
from tests.spark_jobs.kills.job_process import Job
from tests.spark_jobs.kills.killing import drawn_moments, kill_while_writing, run_through_kills

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FLIGHTS = 6_000
BATCHES = 6
PAUSE_SECONDS = 0.2
TIMEOUT_SECONDS = 3600


class ChangingTable:
    """A table whose rows change all the time: a plane gets more and more seats, or goes."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._planes = plane_records()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._change)
        produce_table(servers, topic, self._planes.items())

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _change(self) -> None:
        tails = cycle(self._planes)
        for version in count(1):
            changed = {tail: self._version(tail, version) for tail in islice(tails, 500)}
            produce_table(self._servers, self._topic, changed.items())
            if self._stop.wait(PAUSE_SECONDS):
                return

    def _version(self, tail: str, version: int) -> bytes | None:
        if version % 3 == 0:
            return None
        return json.dumps(json.loads(self._planes[tail]) | {"seats": version % 1000}).encode()


def _flights() -> list[Record]:
    return [Record(line.key, line.value) for line in islice(FEED.lines(FEED.flights()), FLIGHTS)]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(TIMEOUT_SECONDS)
@pytest.mark.parametrize("seed", [31, 32, 33])
def test_copies_of_a_flight_have_the_same_plane_through_kills(
    seed: int, servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    topic = new_name("killed")
    planes = f"{topic}.planes"
    create_topic(servers, topic, 3)
    flights = _flights()
    produce_records(servers, topic, flights)
    arguments = ("--bootstrap-servers", servers, "--topic", topic, "--table-topic", planes)
    limit = ("--max-offsets-per-trigger", str(FLIGHTS // BATCHES))
    job = Job("enrich", (*arguments, *limit), checkpoint=tmp_path / "checkpoint")
    chance = random.Random(seed)
    with ChangingTable(servers, planes), Ends(servers, f"{topic}.enriched") as ends:
        cut = kill_while_writing(job, ends, chance.randrange(3), chance.uniform(0, 0.1))
        ordeal = run_through_kills(job, drawn_moments(seed, job.named_queries(), BATCHES))
        written = ends()
    assert cut, "it was killed when some of a batch was written"
    assert ordeal.unfinished, "it was killed in the middle of a batch"

    enriched = _by_source(servers, f"{topic}.enriched")
    rejected = _by_source(servers, f"{topic}.rejected")
    assert not enriched.keys() & rejected.keys()
    assert len(enriched) + len(rejected) == FLIGHTS
    assert written > len(enriched), "some were written twice"
    assert {len(copies) for copies in enriched.values()} == {1}, "copies are equal"
    valid = [json.loads(next(iter(copies))) for copies in enriched.values()]
    tails = {flight["tailnum"] for flight in valid if flight["plane"] is not None}
    assert tails <= set(plane_records())
    assert len({flight["plane"]["seats"] for flight in valid if flight["plane"]}) > BATCHES


def _by_source(servers: str, topic: str) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[Any]] = defaultdict(set)
    for record in read_topic(servers, topic):
        found[record.headers["source"]].add(record.value)
    return found
