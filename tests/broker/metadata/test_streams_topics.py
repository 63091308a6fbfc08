"""Internal topics are created once at a time, and failures remembered for a while, not all."""

from __future__ import annotations

from broker.metadata.streams_topics import MAX_FAILURES, StreamsTopics


def test_topic_is_begun_once_until_it_is_there() -> None:
    topics = StreamsTopics()
    assert topics.begin(["a", "b"], 0) == ["a", "b"]
    assert topics.begin(["a", "c"], 0) == ["c"]
    topics.created("a")

    assert topics.begin(["a"], 0) == ["a"]


def test_failure_is_reported_until_its_retry_time() -> None:
    topics = StreamsTopics()
    topics.begin(["a"], 0)
    topics.failed("a", "no", 0, 10)
    assert topics.failures(["a", "b"], 9) == {"a": "no"}
    assert topics.begin(["a"], 9) == []

    assert topics.failures(["a"], 10) == {}
    assert topics.begin(["a"], 10) == ["a"]


def test_of_many_failures_those_that_are_over_are_forgotten_first() -> None:
    topics = StreamsTopics()
    for number in range(MAX_FAILURES):
        topics.failed(f"old-{number}", "no", 0, 10 + number)
    topics.failed("new", "no", 10 + MAX_FAILURES // 2, 10_000)
    later = 10 + MAX_FAILURES // 2
    assert topics.failures(["new", f"old-{MAX_FAILURES - 1}"], later).keys() == {
        "new",
        f"old-{MAX_FAILURES - 1}",
    }
    for number in range(2 * MAX_FAILURES):
        topics.failed(f"more-{number}", "no", later, 10_000 + number)

    assert len(topics.failures([f"more-{n}" for n in range(2 * MAX_FAILURES)], later)) <= (
        MAX_FAILURES
    )
