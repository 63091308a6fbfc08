"""Encoded messages decode to the same values, for any values of any message and version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.messages.metadata import MetadataResponse
from protocol.messages.offset_fetch import OffsetFetchRequest
from protocol.messages.topics import CreateTopicsResponse
from protocol.schema import UNDECODABLE
from protocol.wire import DecodeError
from tests.protocol.strategies import every_version, instances

if TYPE_CHECKING:
    from protocol.schema import Message


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_any_values_come_back(pair: tuple[type, int], data: st.DataObject) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    frame = memoryview(bytearray(sent.encode(version)))
    assert type(sent).decode(version, frame) == sent
    assert type(sent).decode_from(version, frame, 0) == (sent, len(frame))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_parts_are_the_bytes(pair: tuple[type, int], data: st.DataObject) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    assert b"".join(sent.encode_parts(version)) == sent.encode(version)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_encoding_in_steps_gives_the_same_bytes(
    pair: tuple[type, int], data: st.DataObject
) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    parts: list[Any] = []
    for _ in sent.encode_in_steps(version, parts):
        pass
    assert b"".join(parts) == sent.encode(version)


def read_in_steps(message: type[Message], version: int, frame: memoryview) -> Any:
    """The message and the position after it, and the numbers of elements that it told meanwhile."""
    steps = message.step_decoder(version)(frame, 0, len(frame))
    told = []
    while True:
        try:
            told.append(next(steps))
        except StopIteration as end:
            return end.value, told


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_decoding_in_steps_gives_the_same_message(
    pair: tuple[type, int], data: st.DataObject
) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    frame = memoryview(bytearray(sent.encode(version)))
    assert read_in_steps(message, version, frame)[0] == (sent, len(frame))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=st.sampled_from(every_version()), data=st.data())
def test_truncated_messages_are_refused_in_steps_too(
    pair: tuple[type[Message], int], data: st.DataObject
) -> None:
    message, version = pair
    frame = memoryview(bytearray(data.draw(instances(message, version)).encode(version)))
    cut = frame[: data.draw(st.integers(0, len(frame)))]
    try:
        whole = message.decode_from(version, cut, 0)
    except DecodeError:
        with pytest.raises(UNDECODABLE):
            read_in_steps(message, version, cut)
    else:
        assert read_in_steps(message, version, cut)[0] == whole


def test_elements_are_counted_before_decoding_with_regular_pauses() -> None:
    partitions = [1, 2, 3]
    topics = [
        OffsetFetchRequest.Topic(name=f"topic-{number}", partition_indexes=partitions)
        for number in range(1000)
    ]
    request = OffsetFetchRequest(group_id="group", topics=topics)
    frame = memoryview(request.encode(7))

    (decoded, _), told = read_in_steps(OffsetFetchRequest, 7, frame)

    assert decoded == request
    assert told[0] == 1000 + 16 * len(partitions)
    assert told[-1] == 1000 + 1000 * len(partitions)
    assert len(told) == 1000 // 16 + 1


def test_long_array_of_numbers_is_read_in_steps() -> None:
    topic = OffsetFetchRequest.Topic(name="topic", partition_indexes=list(range(100_000)))
    request = OffsetFetchRequest(group_id="group", topics=[topic])
    for version in (5, 7):
        frame = memoryview(request.encode(version))
        (decoded, _), told = read_in_steps(OffsetFetchRequest, version, frame)
        assert decoded == request
        assert told == [100_001] * (100_000 // 4096 + 1)


def test_there_is_a_step_for_each_element() -> None:
    topics = [
        CreateTopicsResponse.Topic(name=f"topic-{number}", error_code=0) for number in range(100)
    ]
    response = CreateTopicsResponse(topics=topics)
    for version in CreateTopicsResponse.VERSIONS:
        assert len(list(response.encode_in_steps(version, []))) == len(topics) + 1


def test_there_is_a_step_for_each_element_of_an_element() -> None:
    partitions = [
        MetadataResponse.Topic.Partition(
            error_code=0, partition_index=index, leader_id=0, replica_nodes=[0], isr_nodes=[0]
        )
        for index in range(100)
    ]
    topic = MetadataResponse.Topic(error_code=0, name="wide", partitions=partitions)
    response = MetadataResponse(brokers=[], topics=[topic])
    for version in MetadataResponse.VERSIONS:
        assert len(list(response.encode_in_steps(version, []))) == len(partitions) + 2


def test_parts_encoded_in_steps_are_joined_as_they_grow() -> None:
    kind = MetadataResponse.Topic.Partition
    partitions = [
        kind(error_code=0, partition_index=n, leader_id=0, replica_nodes=[0], isr_nodes=[0])
        for n in range(5000)
    ]
    topic = MetadataResponse.Topic(error_code=0, name="wide", partitions=partitions)
    parts: list[Any] = []
    for _ in MetadataResponse(brokers=[], topics=[topic]).encode_in_steps(12, parts):
        pass
    assert 5 < len(parts) < 100
