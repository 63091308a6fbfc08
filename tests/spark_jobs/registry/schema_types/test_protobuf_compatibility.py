"""Which Protobuf files read what others wrote, by Confluent's rules."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.text_format import Parse

from spark_jobs.registry.schema_types.protobuf_compatibility import differences

ID = 'field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }'
TEXT = 'field { name: "t" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }'
ONEOF = 'oneof_decl { name: "o" }'
ONE_OF = "label: LABEL_OPTIONAL oneof_index: 0"


def file(*fields: str, name: str = "A", more: str = "") -> FileDescriptorProto:
    text = f'message_type {{ name: "{name}" {" ".join(fields)} }} {more}'
    return Parse(text, FileDescriptorProto())


def names(reader: FileDescriptorProto, writer: FileDescriptorProto) -> list[str]:
    return [found.partition(":")[0] for found in differences(reader, writer)]


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (file(ID, TEXT), file(ID)),
        (file(ID), file(ID, TEXT)),
        (file(ID.replace("INT64", "BOOL")), file(ID)),
        (file(ID.replace("INT64", "UINT32")), file(ID)),
        (file(ID.replace('"id"', '"number"')), file(ID)),
        (file(TEXT.replace("STRING", "BYTES").replace("OPTIONAL", "REPEATED")), file(TEXT)),
        (file(ID, more='message_type { name: "B" }'), file(ID)),
        (file(ONEOF, ID.replace("label: LABEL_OPTIONAL", ONE_OF)), file(ID)),
    ],
)
def test_change_that_leaves_bytes_readable_is_allowed(
    reader: FileDescriptorProto, writer: FileDescriptorProto
) -> None:
    assert names(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "name"),
    [
        (file(ID, more='package: "a"'), file(ID, more='package: "b"'), "PACKAGE_CHANGED"),
        (file(ID, name="B"), file(ID), "MESSAGE_REMOVED"),
        (file(ID.replace("INT64", "STRING")), file(ID), "FIELD_SCALAR_KIND_CHANGED"),
        (file(ID.replace("INT64", "SINT64")), file(ID), "FIELD_SCALAR_KIND_CHANGED"),
        (
            file(ID.replace("TYPE_INT64", 'TYPE_MESSAGE type_name: ".A"')),
            file(ID),
            "FIELD_KIND_CHANGED",
        ),
        (
            file(ID.replace("TYPE_INT64", 'TYPE_MESSAGE type_name: ".A"')),
            file(ID.replace("TYPE_INT64", 'TYPE_MESSAGE type_name: ".B"')),
            "FIELD_NAMED_TYPE_CHANGED",
        ),
        (file(ID.replace("OPTIONAL", "REPEATED")), file(ID), "FIELD_NUMERIC_LABEL_CHANGED"),
        (file(ID, TEXT.replace("OPTIONAL", "REQUIRED")), file(ID), "REQUIRED_FIELD_ADDED"),
        (file(ID), file(ID, TEXT.replace("OPTIONAL", "REQUIRED")), "REQUIRED_FIELD_REMOVED"),
        (
            file(ID),
            file(ONEOF, ID, TEXT.replace("label: LABEL_OPTIONAL", ONE_OF)),
            "ONEOF_FIELD_REMOVED",
        ),
        (
            file(ONEOF, *(f.replace("label: LABEL_OPTIONAL", ONE_OF) for f in (ID, TEXT))),
            file(ID, TEXT),
            "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        ),
        (
            file(ONEOF, *(f.replace("label: LABEL_OPTIONAL", ONE_OF) for f in (ID, TEXT))),
            file(ONEOF, ID, TEXT.replace("label: LABEL_OPTIONAL", ONE_OF)),
            "FIELD_MOVED_TO_EXISTING_ONEOF",
        ),
    ],
)
def test_change_that_breaks_readers_is_told_by_name(
    reader: FileDescriptorProto, writer: FileDescriptorProto, name: str
) -> None:
    assert name in names(reader, writer)
