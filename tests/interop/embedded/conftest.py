"""A shared broker for tests without lasting effects on it, and topics on it."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from broker.testing import EmbeddedBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    name = f"topic-{next(_numbers)}"
    broker.create_topic(name)
    broker.requests.clear()
    return name


@pytest.fixture
def produce(broker: EmbeddedBroker) -> Callable[..., list[int]]:
    return lambda topic, *values, **settings: produced(
        broker.bootstrap_servers, topic, *values, **settings
    )


def produced(bootstrap: str, topic: str, *values: bytes, **settings: object) -> list[int]:
    """Send records with librdkafka, one request each; returns the codes of their errors."""
    from confluent_kafka import Producer

    codes: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "linger.ms": 0,
            "retry.backoff.ms": 10,
            "message.timeout.ms": 20_000,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    for value in values:
        producer.produce(
            topic,
            value,
            on_delivery=lambda error, _: codes.append(0 if error is None else error.code()),
        )
        producer.flush(30)
    assert len(codes) == len(values)
    return codes


def until(is_so: Callable[[], object], seconds: float = 20) -> None:
    """Wait for what will come about."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError("it has not come about")
        time.sleep(0.01)
