"""Made-up activity: the same for the same seed, heavy-tailed, resumable, at a steady rate."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import JobError
from spark_jobs.jobs.produce_activity import ActivityProducerOptions, main, produce
from spark_jobs.visitors.visits import BEGIN_MS, Site
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable

ALL_KINDS = Site(pace=1.0, late=0.02, skewed=0.01, malformed=0.01)


def _checksum(site: Site, events: int) -> str:
    digest = hashlib.sha256()
    for line in itertools.islice(site.lines(), events):
        digest.update(b"%b %b %d\n" % (line.key, line.value or b"-", line.timestamp_ms))
    return digest.hexdigest()[:16]


@pytest.mark.parametrize(
    ("site", "checksum"),
    [
        (Site(), "7234564cc7c2d452"),
        (Site(seed=1), "d1cf87bfbdd4be41"),
        (ALL_KINDS, "8a618b4529352d0a"),
    ],
    ids=["default", "another seed", "all kinds"],
)
def test_a_seed_always_gives_the_same_bytes(site: Site, checksum: str) -> None:
    assert _checksum(site, 5_000) == checksum


def test_fewer_events_are_the_begin_of_more() -> None:
    more = list(itertools.islice(ALL_KINDS.lines(), 3_000))
    assert list(itertools.islice(ALL_KINDS.lines(), 1_000)) == more[:1_000]
    assert [line.number for line in more] == list(range(3_000))


def test_few_visitors_make_much_of_the_activity() -> None:
    lines = list(itertools.islice(Site(pace=1.0).lines(), 50_000))
    by_visitor = sorted(Counter(line.key for line in lines).values(), reverse=True)
    tenth = len(by_visitor) // 10
    assert sum(by_visitor[:tenth]) > 0.4 * len(lines)
    assert by_visitor[len(by_visitor) // 2] <= 6
    assert by_visitor[0] > 100


def test_event_time_goes_at_the_wanted_pace() -> None:
    for pace in (2.0, 50.0):
        lines = list(itertools.islice(Site(pace=pace).lines(), 40_000))
        seconds = (lines[-1].timestamp_ms - BEGIN_MS) / 1000
        assert 0.75 < len(lines) / seconds / pace < 1.25


def test_events_are_in_the_order_they_are_sent_and_shares_are_as_wanted() -> None:
    lines = list(itertools.islice(ALL_KINDS.lines(), 20_000))
    times = [line.timestamp_ms for line in lines]
    assert times == sorted(times)
    reasons = Counter(line.damage.reason for line in lines if line.damage)
    assert 120 < reasons["clock-skew"] < 280
    assert 120 < reasons.total() - reasons["clock-skew"] < 280
    whole = [json.loads(line.value or b"") for line in lines if line.damage is None]
    late = [1 for before, after in itertools.pairwise(whole) if after["at"] < before["at"]]
    assert 250 < len(late) < 550
    assert len({event["id"] for event in whole}) == len(whole)


@pytest.mark.parametrize("setting", [{"late": 1.5}, {"pace": 0}, {"visitors": 0}])
def test_impossible_streams_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        Site.model_validate(setting)


def test_producing_again_adds_nothing_and_more_events_add_the_rest(
    servers: str, new_name: Callable[[str], str]
) -> None:
    topic = new_name("visits")
    options = ActivityProducerOptions(
        bootstrap_servers=servers, topic=topic, events=800, malformed=0.05
    )
    assert produce(options).sent == 800
    assert produce(options).sent == 0
    outcome = produce(options.model_copy(update={"events": 1_000}))
    assert (outcome.sent, outcome.already_there) == (200, 800)
    records = read_topic(servers, topic)
    expected = Counter(
        (line.key, line.value, line.timestamp_ms)
        for line in itertools.islice(options.site().lines(), 1_000)
    )
    assert Counter((r.key, r.value, r.timestamp_ms) for r in records) == expected


def test_another_stream_does_not_go_into_the_same_topic(
    servers: str, new_name: Callable[[str], str]
) -> None:
    options = ActivityProducerOptions(
        bootstrap_servers=servers, topic=new_name("visits"), events=50
    )
    produce(options)
    with pytest.raises(JobError, match="holds records of another feed"):
        produce(options.model_copy(update={"seed": 7}))


def test_a_rate_is_not_exceeded(servers: str, new_name: Callable[[str], str]) -> None:
    options = ActivityProducerOptions(
        bootstrap_servers=servers, topic=new_name("visits"), events=600, rate=400.0
    )
    begin = time.monotonic()
    assert produce(options).acknowledged == 600
    assert time.monotonic() - begin >= 599 / 400


def test_the_program_says_what_it_did(
    servers: str, new_name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bootstrap-servers", servers, "--topic", new_name("visits"), "--events", "20"]
    assert main(arguments) == 0
    assert capsys.readouterr().out == (
        "produce_activity: 20 lines, 0 of them damaged; 20 sent and acknowledged, "
        "0 were there before\n"
    )
