"""Behaviour of declared messages: constructor, comparison, text, versions, tags, trailing bytes."""

from __future__ import annotations

import struct as structs
from typing import Any, TypeVar, cast

import pytest

from protocol import compiler
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.consumer_offsets_records import OffsetCommitKey, OffsetCommitValue
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from protocol.messages.groups import ListGroupsResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.topic_partitions import DescribeTopicPartitionsRequest
from protocol.schema import Struct
from protocol.wire import DecodeError, EncodeError, encode_uvarint

AnyStruct = TypeVar("AnyStruct", bound=Struct)
PartitionData = ProduceRequest.TopicData.PartitionData
PartitionResponse = ProduceResponse.Response.PartitionResponse


class Region:
    """Stands for a piece of a file."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def made(cls: type[AnyStruct], *places: Any, **values: Any) -> AnyStruct:
    """An object of which only these fields are given, which a type checker would not let pass."""
    build: Any = cls
    return cast("AnyStruct", build(*places, **values))


def test_fields_left_out_have_kafkas_defaults() -> None:
    request = made(FetchRequest)
    assert (request.max_bytes, request.session_epoch, request.cluster_id) == (2**31 - 1, -1, None)
    assert (request.topics, request.rack_id) == ([], "")
    assert made(FetchRequest.Topic.Partition).high_watermark == 2**63 - 1


def test_fields_are_given_by_name_only() -> None:
    for _ in range(2):
        with pytest.raises(TypeError):
            made(PartitionData, 3, b"x")


def test_each_object_has_its_own_lists_and_structs() -> None:
    first, second = made(FetchResponse.Response.Partition), made(FetchResponse.Response.Partition)
    assert first.current_leader is not second.current_leader
    assert first.aborted_transactions is not second.aborted_transactions
    first.current_leader.leader_id = 7
    assert second.current_leader.leader_id == -1
    assert made(FetchResponse.Response.Partition).current_leader.leader_id == -1


def test_each_decoded_object_has_its_own_lists_and_structs() -> None:
    data = FetchResponse.Response.Partition
    encoded = made(
        FetchResponse, responses=[made(FetchResponse.Response, partitions=[made(data), made(data)])]
    )
    partitions = FetchResponse.decode(11, encoded.encode(11)).responses[0].partitions
    assert partitions[0].current_leader is not partitions[1].current_leader
    assert partitions[0].aborted_transactions is not partitions[1].aborted_transactions


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(TypeError):
        made(HeartbeatRequest, groupid="g")
    with pytest.raises(AttributeError):
        made(HeartbeatRequest).groupid = "g"  # type: ignore[attr-defined]


def test_messages_are_equal_when_all_fields_are() -> None:
    assert made(HeartbeatResponse, error_code=3) == made(HeartbeatResponse, error_code=3)
    assert made(HeartbeatResponse, error_code=3) != made(HeartbeatResponse, error_code=4)
    assert made(HeartbeatResponse) != made(HeartbeatRequest)
    assert made(HeartbeatResponse) != 3


def test_messages_cannot_be_keys_of_a_dict() -> None:
    with pytest.raises(TypeError):
        hash(made(HeartbeatResponse))


def test_text_shows_every_field() -> None:
    assert repr(made(HeartbeatResponse, error_code=3)) == (
        "HeartbeatResponse(throttle_time_ms=0, error_code=3)"
    )
    assert repr(PartitionData(index=1, records=b"x")) == (
        "ProduceRequest.TopicData.PartitionData(index=1, records=b'x')"
    )


def test_requests_and_responses_know_each_other() -> None:
    assert HeartbeatRequest.RESPONSE is HeartbeatResponse
    assert HeartbeatRequest.API_KEY == HeartbeatResponse.API_KEY == 12


def test_trailing_bytes_are_refused() -> None:
    encoded = made(HeartbeatResponse).encode(0)
    with pytest.raises(DecodeError, match=r"HeartbeatResponse v0: 2 bytes left over"):
        HeartbeatResponse.decode(0, encoded + b"xy")


def test_decode_from_says_where_the_message_ends() -> None:
    encoded = made(HeartbeatResponse, error_code=3).encode(1)
    read, position = HeartbeatResponse.decode_from(1, b"abc" + encoded + b"xy", 3)
    assert (read.error_code, position) == (3, 3 + len(encoded))


def test_every_truncation_is_refused() -> None:
    encoded = made(ApiVersionsRequest, client_software_name="a" * 200).encode(3)
    for size in range(len(encoded)):
        with pytest.raises(DecodeError, match="ApiVersionsRequest v3"):
            ApiVersionsRequest.decode(3, encoded[:size])


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_undeclared_versions_raise_value_error(version: int) -> None:
    with pytest.raises(ValueError, match=r"HeartbeatRequest has versions 0-4, not"):
        HeartbeatRequest.decode(version, b"")
    with pytest.raises(ValueError, match=r"HeartbeatRequest has versions 0-4, not"):
        made(HeartbeatRequest).encode(version)


def test_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(DecodeError, match="group_id may not be null"):
        HeartbeatRequest.decode(0, b"\xff\xff" + bytes(8))
    with pytest.raises(DecodeError, match="group_id may not be null"):
        HeartbeatRequest.decode(4, bytes(8))


def test_strings_of_every_length_form_come_back() -> None:
    for size in (0, 1, 126, 127, 128, 16382, 16383, 16384, 32767):
        request = made(HeartbeatRequest, group_id="g" * size)
        for version in (3, 4):
            assert HeartbeatRequest.decode(version, request.encode(version)) == request


def test_a_string_longer_than_kafkas_limit_is_refused() -> None:
    longest = made(HeartbeatRequest, group_id="g" * 32767).encode(4)
    too_long = encode_uvarint(32769) + b"g" + longest[3:]
    with pytest.raises(DecodeError, match="group_id has 32768 bytes"):
        HeartbeatRequest.decode(4, too_long)


def test_records_are_slices_of_the_frame() -> None:
    frame = bytearray(produce(b"records").encode(9))
    (topic,) = ProduceRequest.decode(9, memoryview(frame)).topic_data
    (partition,) = topic.partition_data
    assert isinstance(partition.records, memoryview)
    partition.records[:] = b"RECORDS"
    assert b"RECORDS" in frame


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16382, 16383, 16384, 2_097_151, 2_097_152])
def test_records_of_every_length_form_come_back(size: int) -> None:
    for version in (8, 9):
        decoded = ProduceRequest.decode(version, produce(b"r" * size).encode(version))
        assert decoded == produce(b"r" * size)


@pytest.mark.parametrize("version", [2, 3], ids=["fixed lengths", "flexible"])
def test_string_that_no_client_could_read_is_not_written(version: int) -> None:
    """As in Apache's generated classes: an int16 says how long a string may be, in all versions."""
    longest = ListGroupsResponse.Group(group_id="é" * 16_383 + "g", protocol_type="")
    response = ListGroupsResponse(error_code=0, groups=[longest])
    assert ListGroupsResponse.decode(version, response.encode(version)).groups[0] == longest

    longest.group_id += "g"

    with pytest.raises((EncodeError, structs.error)):
        response.encode(version)


def test_regions_of_files_stand_where_records_go() -> None:
    region = Region(300)
    partitions = [
        made(FetchResponse.Response.Partition, partition_index=0, records=region),
        made(FetchResponse.Response.Partition, partition_index=1, records=Region(0)),
        made(FetchResponse.Response.Partition, partition_index=2, records=b"abc"),
    ]
    response = made(FetchResponse, responses=[made(FetchResponse.Response, partitions=partitions)])
    parts = response.encode_parts(12)
    assert parts[1] is region
    assert parts[3] == b"abc"
    assert len(parts) == 5
    partitions[0].records = b"r" * 300
    partitions[1].records = b""
    flat = b"".join(b"r" * 300 if part is region else bytes(part) for part in parts)  # type: ignore[arg-type]
    assert flat == response.encode(12)


def test_fields_that_a_version_lacks_are_left_out() -> None:
    response = made(
        PartitionResponse, index=1, base_offset=5, log_start_offset=9, error_message="why"
    )
    topic = made(ProduceResponse.Response, name="t", partition_responses=[response])
    whole = made(ProduceResponse, responses=[topic])
    read = ProduceResponse.decode(1, whole.encode(1)).responses[0].partition_responses[0]
    assert (read.base_offset, read.log_start_offset, read.error_message) == (5, -1, None)


def test_unknown_tags_are_skipped() -> None:
    body = made(HeartbeatResponse, error_code=3).encode(4)
    assert body[-1:] == b"\0"
    tagged = body[:-1] + b"\2" + b"\5\3abc" + b"\x90\1\0"
    assert HeartbeatResponse.decode(4, tagged) == made(HeartbeatResponse, error_code=3)


def test_unknown_tags_between_known_ones_are_skipped() -> None:
    response = made(ApiVersionsResponse, finalized_features_epoch=7)
    body = response.encode(3)
    known = b"\1" + b"\1\x08" + structs.pack(">q", 7)
    assert body.endswith(known)
    tagged = body.removesuffix(known) + b"\3" + b"\x77\1z" + known[1:] + b"\x78\0"
    assert ApiVersionsResponse.decode(3, tagged) == response


@pytest.mark.parametrize(
    "section",
    [
        b"\1\1\x07" + bytes(8),
        b"\1\1\x09" + bytes(9),
        b"\1\1\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x0f",
        b"\1\x63\x7f",
        b"\1",
    ],
    ids=["too short", "too long", "past the end", "too many", "unknown past the end", "missing"],
)
def test_damaged_tag_sections_are_refused(section: bytes) -> None:
    body = made(ApiVersionsResponse).encode(3)
    with pytest.raises(DecodeError, match="ApiVersionsResponse v3"):
        ApiVersionsResponse.decode(3, body[:-1] + section)


def test_tagged_fields_are_written_in_the_order_of_their_tags() -> None:
    request = made(
        FetchRequest,
        cluster_id="c",
        replica_state=FetchRequest.ReplicaState(replica_id=1, replica_epoch=2),
    )
    body = request.encode(15)
    assert body.endswith(b"\2" + b"\0\2\2c" + b"\1\x0d" + structs.pack(">iq", 1, 2) + b"\0")
    assert FetchRequest.decode(15, body) == request


def test_a_struct_may_be_null() -> None:
    cursor = DescribeTopicPartitionsRequest.Cursor(topic_name="t", partition_index=4)
    for request in (
        made(DescribeTopicPartitionsRequest, cursor=None),
        made(DescribeTopicPartitionsRequest, cursor=cursor),
    ):
        assert DescribeTopicPartitionsRequest.decode(0, request.encode(0)) == request


def test_record_keys_have_their_type_in_front() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    encoded = key.encode_versioned()
    assert encoded == b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\2"
    assert OffsetCommitKey.decode_versioned(memoryview(encoded)) == (1, key)


def test_record_values_have_their_version_in_front() -> None:
    value = made(OffsetCommitValue, offset=5, metadata="m", commit_timestamp=6, leader_epoch=2)
    assert value.encode_versioned(3)[:2] == b"\0\3"
    assert OffsetCommitValue.decode_versioned(value.encode_versioned(3)) == (3, value)


@pytest.mark.parametrize("encoded", [b"", b"\0", b"\0\7" + bytes(30), b"\xff\xff" + bytes(30)])
def test_record_values_of_unknown_versions_are_refused(encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="OffsetCommitValue"):
        OffsetCommitValue.decode_versioned(encoded)


def test_record_keys_of_another_type_are_refused() -> None:
    with pytest.raises(DecodeError, match="unknown type 2"):
        OffsetCommitKey.decode_versioned(b"\0\2\0\0\0\0\0\0\0\0")


def test_generated_source_can_be_read() -> None:
    text = str(compiler.decoder_source(ProduceRequest, 9))
    assert "message.acks, message.timeout_ms, count_3, = unpack_hiB(buffer, position)" in text
    text = str(compiler.encoder_source(HeartbeatResponse, 1))
    assert "append(pack_ih(message.throttle_time_ms, message.error_code))" in text


def produce(records: bytes) -> ProduceRequest:
    topic = ProduceRequest.TopicData(
        name="t", partition_data=[PartitionData(index=0, records=records)]
    )
    return ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])
