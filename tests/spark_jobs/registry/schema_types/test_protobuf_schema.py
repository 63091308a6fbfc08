"""Protobuf schemas as text and as descriptors, compiled by `protoc`."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from spark_jobs.registry.schema_types.protobuf_schema import parse
from spark_jobs.registry.schema_types.schema_type import InvalidSchemaError

pytestmark = pytest.mark.process

MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
ORDER = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "shop/money.proto";
message Order { Money total = 1; google.protobuf.Timestamp at = 2; }"""


def test_text_that_differs_in_writing_is_the_same_schema() -> None:
    one, other = parse(MONEY, {}), parse(MONEY.replace("; ", ";\n  // money\n"), {})
    assert one.identity == other.identity
    assert one.text == MONEY


def test_descriptor_is_the_same_schema_as_its_text() -> None:
    descriptor = parse(MONEY, {}).identity
    assert FileDescriptorProto.FromString(base64.b64decode(descriptor)).package == "shop"
    assert parse(descriptor, {}).identity == descriptor


@pytest.mark.parametrize("as_descriptor", [False, True])
def test_imports_are_found_among_references(as_descriptor: bool) -> None:
    money = parse(MONEY, {}).identity if as_descriptor else MONEY
    order = parse(ORDER, {"shop/money.proto": money})
    assert [message.name for message in order.model.message_type] == ["Order"]


@pytest.mark.parametrize("text", ["message", ORDER, "message A { Nothing b = 1; }", "aGVsbG8="])
def test_text_that_does_not_compile_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        parse(text, {})


@pytest.mark.parametrize("name", ["../out.proto", "/etc/out.proto", "a\0b"])
def test_reference_cannot_name_a_file_outside(name: str) -> None:
    with pytest.raises(InvalidSchemaError, match="no name of a file"):
        parse(ORDER, {name: MONEY})
