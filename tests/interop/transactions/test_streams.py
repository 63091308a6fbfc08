"""Kafka Streams counts words exactly once, though it and the broker are killed (kill -9)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.conftest import SHORT_SESSIONS, create_topic
from tests.interop.workloads.word_count import (
    LINES_AT_ONCE,
    PARTITIONS,
    WORDS_PER_LINE,
    Options,
    WordCount,
)
from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.conftest import NewBroker
    from tests.support.brokers.broker_process import BrokerProcess


QUICK = {
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
}


@pytest.fixture
def own_broker(new_broker: NewBroker, tmp_path: Path) -> Iterator[BrokerProcess]:
    process = new_broker(tmp_path / "own-broker", SHORT_SESSIONS | QUICK)
    yield process
    process.kill()


@pytest.fixture(
    params=[
        Options(protocol=protocol, version=version)
        for protocol in ("classic", "streams")
        for version in (jars.STREAMS, jars.STREAMS_4_3)
    ],
    ids=lambda options: f"{options.protocol}-{options.version}",
)
def word_count(
    own_broker: BrokerProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[WordCount]:
    own_broker.start()
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap, "log_level": 0})
    for topic in ("lines", "words"):
        create_topic(admin, topic, PARTITIONS)
    with closing(WordCount(own_broker.bootstrap, tmp_path, request.param)) as application:
        yield application


@pytest.mark.slow
def test_streams_counts_each_word_once(own_broker: BrokerProcess, word_count: WordCount) -> None:
    chapter_words = LINES_AT_ONCE * WORDS_PER_LINE
    for chapter in range(4):
        word_count.give(chapter)
        word_count.wait_for(chapter * chapter_words + chapter_words // 2)
        if chapter in {0, 2}:
            word_count.application.kill()
        if chapter in {1, 2}:
            own_broker.kill()
            own_broker.start()

    word_count.wait_for(4 * chapter_words)

    assert word_count.has_counted_once(), word_count.told
    assert word_count.application.starts >= 3
