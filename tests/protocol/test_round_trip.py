"""What is encoded is decoded to the same values, for any values of any message and version."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protocol.messages.metadata import MetadataResponse
from protocol.messages.topics import CreateTopicsResponse
from tests.protocol.strategies import every_version, instances


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
def test_what_is_encoded_in_steps_is_the_same(pair: tuple[type, int], data: st.DataObject) -> None:
    message, version = pair
    sent = data.draw(instances(message, version))
    parts: list[Any] = []
    for _ in sent.encode_in_steps(version, parts):
        pass
    assert b"".join(parts) == sent.encode(version)


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
