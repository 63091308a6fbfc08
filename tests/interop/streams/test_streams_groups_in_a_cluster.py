"""Kafka Streams with `group.protocol=streams` on three brokers, whose coordinator is killed."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from coordinator.partitioner import partition_for
from tests.interop.conftest import create_topic, eventually
from tests.interop.workloads.word_count import LINES_AT_ONCE, WORDS_PER_LINE, Options, WordCount
from tests.support import jars
from tests.support.brokers.trio import OFFSETS, Trio
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUP = "word-count"
CHAPTER_WORDS = LINES_AT_ONCE * WORDS_PER_LINE
CHANGELOG = f"{GROUP}-counts-changelog"
COORDINATOR_PARTITIONS = 3
PARTITIONS = 2


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    """Three brokers whose features others do not share."""
    three = Trio(tmp_path)
    try:
        three.heal()
        yield three
    finally:
        three.kill()


@pytest.mark.slow
def test_streams_counts_each_word_once_when_its_coordinator_dies(
    trio: Trio, tmp_path: Path
) -> None:
    for topic in ("lines", "words"):
        create_topic(trio.admin, topic, PARTITIONS, replicas=3)
    with closing(Tools(jars.KAFKA_4)) as tools:
        server = ("--bootstrap-server", trio.bootstrap)
        tools.check("features", *server, "upgrade", "--feature", "streams.version=1")
        for broker in trio.brokers:
            eventually(partial(has_streams, tools, broker.bootstrap))
    application = WordCount(trio.bootstrap, tmp_path, Options(protocol="streams"))
    with closing(application) as counting:
        counting.give(0)
        counting.wait_for(CHAPTER_WORDS)
        partition = partition_for(GROUP, COORDINATOR_PARTITIONS)
        coordinator = trio.leader(OFFSETS, partition)
        trio.brokers[coordinator].kill()
        trio.wait_for_another_leader(OFFSETS, partition, coordinator)
        counting.give(1)
        counting.wait_for(2 * CHAPTER_WORDS)

        assert counting.has_counted_once(), counting.told
        shown = trio.admin.list_topics(CHANGELOG).topics[CHANGELOG].partitions
        assert [len(partition.replicas) for partition in shown.values()] == [3] * PARTITIONS


def has_streams(tools: Tools, bootstrap: str) -> bool:
    """Return whether a broker works at the new level."""
    told = tools.check("features", "--bootstrap-server", bootstrap, "describe").lines
    [line] = [line for line in told if "streams.version" in line]
    return "FinalizedVersionLevel: 1" in line
