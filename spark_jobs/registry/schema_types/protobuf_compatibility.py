"""Whether one Protobuf file reads what another wrote: Confluent's rules, on descriptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

INTEGERS = {
    *(Field.TYPE_INT32, Field.TYPE_UINT32, Field.TYPE_INT64, Field.TYPE_UINT64, Field.TYPE_BOOL),
}
KINDS = (
    {*INTEGERS, Field.TYPE_ENUM},
    {Field.TYPE_SINT32, Field.TYPE_SINT64},
    {Field.TYPE_STRING, Field.TYPE_BYTES},
    {Field.TYPE_FIXED32, Field.TYPE_SFIXED32},
    {Field.TYPE_FIXED64, Field.TYPE_SFIXED64},
)
"""Types that are the same bytes."""

NAMED = {Field.TYPE_MESSAGE, Field.TYPE_GROUP, Field.TYPE_ENUM}
MERGED = {Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE, Field.TYPE_GROUP}
"""Types of which one may become several, and several one."""


def differences(reader: FileDescriptorProto, writer: FileDescriptorProto) -> list[str]:
    """Return what keeps `reader` from reading what `writer` wrote."""
    if reader.package != writer.package:
        return [f"PACKAGE_CHANGED: '{writer.package}' became '{reader.package}'"]
    read, written = reader.message_type, writer.message_type
    return list(_messages({m.name: m for m in read}, {m.name: m for m in written}, ""))


def _messages(
    read: Mapping[str, DescriptorProto], written: Mapping[str, DescriptorProto], path: str
) -> Iterator[str]:
    for name, message in written.items():
        place = f"{path}/{name}"
        if name not in read:
            yield f"MESSAGE_REMOVED: {place}"
            continue
        yield from _fields(read[name], message, place)
        yield from _messages(
            {m.name: m for m in read[name].nested_type},
            {m.name: m for m in message.nested_type},
            place,
        )


def _fields(reader: DescriptorProto, writer: DescriptorProto, path: str) -> Iterator[str]:
    read = {field.number: field for field in reader.field}
    written = {field.number: field for field in writer.field}
    for number, field in read.items():
        if number not in written and field.label == Field.LABEL_REQUIRED:
            yield f"REQUIRED_FIELD_ADDED: {path}/{field.name}"
    for number, field in written.items():
        place = f"{path}/{field.name}"
        if number in read:
            yield from _field(read[number], field, place)
        elif field.label == Field.LABEL_REQUIRED:
            yield f"REQUIRED_FIELD_REMOVED: {place}"
        elif _oneof(writer, field) is not None:
            yield f"ONEOF_FIELD_REMOVED: {place}"
    yield from _moves(reader, writer, path)


def _field(reader: Field, writer: Field, path: str) -> Iterator[str]:
    types = {reader.type, writer.type}
    if len(types) > 1 and not any(types <= kind for kind in KINDS):
        change = "FIELD_KIND_CHANGED" if types & NAMED else "FIELD_SCALAR_KIND_CHANGED"
        yield f"{change}: {path}"
    elif reader.type_name != writer.type_name and not types & INTEGERS:
        yield f"FIELD_NAMED_TYPE_CHANGED: {path}"
    is_repeated = {found.label == Field.LABEL_REPEATED for found in (reader, writer)}
    if len(is_repeated) > 1 and not types <= MERGED:
        yield f"FIELD_NUMERIC_LABEL_CHANGED: {path}"


def _oneof(message: DescriptorProto, field: Field) -> str | None:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return str(message.oneof_decl[field.oneof_index].name)


def _moves(reader: DescriptorProto, writer: DescriptorProto, path: str) -> Iterator[str]:
    """Fields outside any `oneof` that several of one, or one of old, took in."""
    before = {field.number: _oneof(writer, field) for field in writer.field}
    existing = {name for name in before.values() if name is not None}
    moved: dict[str, int] = {}
    for field in reader.field:
        name = _oneof(reader, field)
        if name is None or before.get(field.number, name) is not None:
            continue
        moved[name] = moved.get(name, 0) + 1
        if name in existing:
            yield f"FIELD_MOVED_TO_EXISTING_ONEOF: {path}/{field.name}"
    for name, count in moved.items():
        if count > 1:
            yield f"MULTIPLE_FIELDS_MOVED_TO_ONEOF: {path}/{name}"
