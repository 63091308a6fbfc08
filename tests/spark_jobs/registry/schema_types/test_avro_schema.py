"""How Avro schemas are written, and which resolve what others wrote."""

from __future__ import annotations

import pytest

from spark_jobs.registry.schema_types.avro_schema import incompatibilities, parse
from tests.spark_jobs.registry.schema_texts import avro

PROMOTED = [("int", "long"), ("long", "double"), ("string", "bytes"), ("bytes", "string")]


def told(reader: str, writer: str) -> list[str]:
    return incompatibilities(parse(reader, {}), parse(writer, {}))


def test_schema_is_written_as_apache_avro_writes_it() -> None:
    text = """{"fields": [{"type": {"type": "int"}, "name": "a", "doc": "é"}], "mine": [1, 2],
              "name": "A", "type": "record", "namespace": "n"}"""
    assert parse(text, {}).text == (
        '{"type":"record","name":"A","namespace":"n",'
        '"fields":[{"name":"a","type":"int","doc":"é"}],"mine":[1,2]}'
    )


@pytest.mark.parametrize("text", ["string", '"string"', '{"type":"string"}'])
def test_primitive_type_is_written_in_one_way(text: str) -> None:
    assert parse(text, {}).text == '"string"'


@pytest.mark.parametrize(("writer", "reader"), PROMOTED)
def test_promoted_type_is_read(writer: str, reader: str) -> None:
    assert told(avro(("a", reader)), avro(("a", writer))) == []


@pytest.mark.parametrize(("writer", "reader"), [("long", "int"), ("string", "long")])
def test_narrowed_type_is_not_read(writer: str, reader: str) -> None:
    assert told(avro(("a", reader)), avro(("a", writer)))[0].startswith("TYPE_MISMATCH: ")


def test_record_of_another_name_is_not_read() -> None:
    assert told(avro(("a", "int"), name="B"), avro(("a", "int")))


def test_record_inside_itself_is_compared_to_an_end() -> None:
    text = avro(("value", "int"), ("next", ["null", "Order"], None))
    assert told(text.replace('"int"', '"long"'), text) == []
