"""The topics of a subscription, as they stand in what a consumer joins with."""

from __future__ import annotations

import struct

import pytest

from coordinator.groups.subscriptions import subscribed_topics


def subscription(*topics: bytes) -> bytes:
    names = b"".join(struct.pack(">h", len(one)) + one for one in topics)
    return struct.pack(">hi", 1, len(topics)) + names


def test_topics_are_those_of_the_subscription_whatever_follows() -> None:
    assert subscribed_topics(subscription(b"a", b"b") + b"user data") == frozenset({"a", "b"})


def test_name_that_is_not_utf_8_takes_no_other_topic_with_it() -> None:
    assert subscribed_topics(subscription(b"Z\xfcrich", b"a")) == frozenset({"Z\ufffdrich", "a"})


@pytest.mark.parametrize(
    "content", [b"", b"\xff", subscription(b"a")[:-1], struct.pack(">hi", 1, -1)]
)
def test_other_bytes_are_no_subscription(content: bytes) -> None:
    assert subscribed_topics(content) is None
