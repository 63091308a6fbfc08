"""A broker that dies under a Kafka Streams application: at drawn moments, and at named steps."""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from broker.runtime import failpoints
from tests.interop.conftest import against_apache, create_topic, wait_for_coordinators
from tests.interop.streams.test_streams_groups import CHAPTER_WORDS, QUICK
from tests.interop.workloads.word_count import PARTITIONS, Options, WordCount
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache(), reason="it is our broker that dies"),
]

CHAPTERS = 3
STEPS = (
    "StreamsGroupTopology",
    "StreamsGroupMemberMetadata",
    "StreamsGroupMetadata",
    "StreamsGroupTargetAssignmentMember",
    "StreamsGroupTargetAssignmentMetadata",
    "StreamsGroupCurrentMemberAssignment",
    "StreamsGroupCurrentMemberAssignment:3",
)


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker whose members heartbeat often, with the topics of the application."""
    process = ours(tmp_path / "broker", QUICK)
    process.start()
    try:
        wait_for_coordinators(process.bootstrap)
        admin = AdminClient({"bootstrap.servers": process.bootstrap, "log_level": 0})
        for topic in ("lines", "words"):
            create_topic(admin, topic, PARTITIONS)
        yield process
    finally:
        process.kill()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_word_is_counted_once_whenever_the_broker_dies(
    mortal: BrokerProcess, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    count = WordCount(mortal.bootstrap, tmp_path, Options(protocol="streams", threads=2))
    with closing(count) as counting:
        for chapter in range(CHAPTERS):
            counting.give(chapter)
            counting.wait_for(chapter * CHAPTER_WORDS + chance.randrange(CHAPTER_WORDS))
            mortal.kill()
            mortal.start()
        counting.wait_for(CHAPTERS * CHAPTER_WORDS)

        assert counting.has_counted_once(), counting.told


@pytest.mark.parametrize("step", STEPS)
def test_application_begins_though_the_coordinator_dies_at_a_step(
    mortal: BrokerProcess, tmp_path: Path, step: str
) -> None:
    mortal.kill()
    mortal.environment = {failpoints.VARIABLE: step}
    mortal.start()
    count = WordCount(mortal.bootstrap, tmp_path, Options(protocol="streams", threads=2))
    with closing(count) as counting:
        counting.give(0)
        mortal.wait_until_ended()
        mortal.environment = {}
        mortal.start()
        counting.wait_for(CHAPTER_WORDS)

        assert counting.has_counted_once(), counting.told
