"""Topics that are created on first use: how much is looked at for each name of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.metadata.auto_topics import AutoTopics
from broker.metadata.metadata_cache import LiveBroker, MetadataCache, TopicMetadata
from config.broker import BrokerConfig
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

MANY = 100


class CountedTopics(dict[str, TopicMetadata]):
    """Counts how often all topics are looked at."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


def never(work: Coroutine[Any, Any, None], _: str) -> None:
    work.close()


def test_topics_are_looked_at_once_for_all_names_of_a_request() -> None:
    cache = MetadataCache()
    cache.brokers = {0: LiveBroker(0, {}, None)}
    names = [f"a.{number}" for number in range(MANY)]
    known = cache.topics = CountedTopics({n: TopicMetadata(n, ZERO_UUID) for n in names})
    topics = AutoTopics(BrokerConfig(), cache, None, never)  # type: ignore[arg-type]

    new = [topics.request(f"b.{number}") for number in range(MANY)]
    assert set(new) == {ErrorCode.LEADER_NOT_AVAILABLE}
    assert topics.request("a_7") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert topics.request("b_7") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert topics.request("b.7") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert known.walks == 1

    cache.revision += 1
    known["c.1"] = TopicMetadata("c.1", ZERO_UUID)
    assert topics.request("c_1") is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert known.walks == 2
