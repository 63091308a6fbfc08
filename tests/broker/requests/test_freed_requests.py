"""Long requests and answers are freed in slices, regardless of their last holder."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from broker.handlers.topics.metadata import PARTITIONS_AT_ONCE
from broker.requests.dispatch import Dispatcher
from broker.requests.long_requests import FREED_AT_ONCE, Remains
from broker.runtime.slices import at_once
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.connections import connected
from tests.broker.handlers.data_broker import DataBroker, run_data_broker
from tests.broker.requests.test_long_requests import answer, frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

MANY = 20 * FREED_AT_ONCE


class Weak:
    """Tells whether it was freed."""


def response(topics: int, partitions: int) -> MetadataResponse:
    kind: Any = MetadataResponse.Topic
    return MetadataResponse(
        brokers=[],
        topics=[
            kind(
                name=f"topic-{number}",
                partitions=[kind.Partition(partition_index=n) for n in range(partitions)],
            )
            for number in range(topics)
        ],
    )


def test_elements_are_freed_in_steps_wherever_they_are() -> None:
    for message in (response(MANY, 0), response(1, MANY), response(100, MANY // 100)):
        left: list[Iterator[None]] = []
        remains = Remains(left.append, None)
        remains.keep(message)
        remains.keep(object())
        del message
        assert not left
        del remains
        (steps,) = left
        assert len(list(steps)) >= MANY // FREED_AT_ONCE


def test_a_message_still_referenced_is_not_cleared() -> None:
    message = response(10, 10)
    remains = Remains(at_once, None)
    remains.keep(message)
    del remains
    assert message == response(10, 10)


def test_count_is_held_until_all_is_freed() -> None:
    held = Weak()
    left: list[Iterator[None]] = []
    is_held = weakref.ref(held)
    remains = Remains(left.append, held)
    remains.keep(response(1, MANY))
    del remains, held
    assert is_held() is not None
    at_once(left.pop())
    assert is_held() is None


def test_long_request_and_its_answer_are_freed_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [MetadataRequest.Topic(name=f"topic-{number}") for number in range(MANY // 4)]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    left: list[int] = []

    async def scenario(broker: DataBroker) -> None:
        def note(steps: Iterator[None]) -> None:
            left.append(len(list(steps)))

        monkeypatch.setattr(broker.services.leftovers, "add", note)
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(frame(request, 9))
            assert len((await answer(wire, request, 9)).topics) == len(names)

    run_data_broker(tmp_path, scenario)
    assert len(left) == 1
    assert left[0] >= 2 * len(names) // FREED_AT_ONCE - 1


def test_long_answer_to_a_short_request_is_freed_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = PARTITIONS_AT_ONCE + 1
    left: list[int] = []

    async def scenario(broker: DataBroker) -> None:
        def note(steps: Iterator[None]) -> None:
            left.append(len(list(steps)))

        await broker.create_topic(count=partitions)
        monkeypatch.setattr(broker.services.leftovers, "add", note)
        request = MetadataRequest(topics=None)
        async with connected(Dispatcher(broker.services)) as wire:
            wire.send(frame(request, 9))
            [topic] = (await answer(wire, request, 9)).topics
            assert len(topic.partitions) == partitions

    run_data_broker(tmp_path, scenario)
    assert len(left) == 1
    assert left[0] >= partitions // FREED_AT_ONCE - 1
