"""Which JSON Schemas take all that others take."""

from __future__ import annotations

from typing import Any

import pytest

from spark_jobs.registry.schema_types.json_compatibility import differences

Schema = dict[str, Any]


def names(reader: Any, writer: Any) -> list[str]:
    return [found.partition(":")[0] for found in differences(reader, {}, writer, {})]


def closed(**more: Any) -> Schema:
    return {"type": "object", "additionalProperties": False, **more}


INTEGER, NUMBER, TEXT = ({"type": kind} for kind in ("integer", "number", "string"))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (True, TEXT),
        ({}, TEXT),
        (TEXT, False),
        (NUMBER, INTEGER),
        ({"type": ["integer", "null"]}, INTEGER),
        ({"maximum": 5}, {"maximum": 4}),
        ({"multipleOf": 5}, {"multipleOf": 10}),
        ({"enum": [1, 2]}, {"enum": [1]}),
        ({"enum": [1, 2]}, {"const": 1}),
        (closed(properties={"a": TEXT}), closed()),
        ({"type": "object"}, {"type": "object", "properties": {"a": TEXT}}),
        ({"required": ["a"], "properties": {"a": {"default": 1}}}, {}),
        ({"oneOf": [TEXT, INTEGER]}, TEXT),
        ({"oneOf": [TEXT, NUMBER]}, {"anyOf": [INTEGER, TEXT]}),
        ({"type": ["string", "integer"]}, {"oneOf": [TEXT, INTEGER]}),
        ({"items": NUMBER}, {"items": INTEGER}),
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, TEXT),
    ],
)
def test_schema_takes_what_another_takes(reader: Any, writer: Any) -> None:
    assert names(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "name"),
    [
        (False, TEXT, "TYPE_CHANGED"),
        (INTEGER, NUMBER, "TYPE_NARROWED"),
        (TEXT, {}, "TYPE_NARROWED"),
        ({"maximum": 4}, {"maximum": 5}, "MAXIMUM_DECREASED"),
        ({"maxLength": 4}, {}, "MAX_LENGTH_ADDED"),
        ({"minItems": 2}, {"minItems": 1}, "MIN_ITEMS_INCREASED"),
        ({"multipleOf": 10}, {"multipleOf": 5}, "MULTIPLE_OF_CHANGED"),
        ({"uniqueItems": True}, {}, "UNIQUE_ITEMS_ADDED"),
        ({"pattern": "a"}, {"pattern": "b"}, "PATTERN_CHANGED"),
        ({"enum": [1]}, {"enum": [1, 2]}, "ENUM_ARRAY_NARROWED"),
        ({"enum": [1]}, {}, "ENUM_ARRAY_NARROWED"),
        (
            {"type": "object", "properties": {"a": TEXT}},
            {"type": "object"},
            "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        ),
        (closed(), closed(properties={"a": TEXT}), "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        (closed(), {"type": "object"}, "ADDITIONAL_PROPERTIES_REMOVED"),
        ({"required": ["a"]}, {}, "REQUIRED_ATTRIBUTE_ADDED"),
        ({"oneOf": [TEXT]}, {"oneOf": [TEXT, INTEGER]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        ({"allOf": [TEXT, {"maxLength": 1}]}, TEXT, "COMBINED_TYPE_SUBSCHEMAS_CHANGED"),
        ({"items": INTEGER}, {"items": NUMBER}, "TYPE_NARROWED"),
        ({"not": TEXT}, {}, "NOT_ADDED"),
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, INTEGER, "TYPE_NARROWED"),
    ],
)
def test_schema_that_takes_less_is_told_by_name(reader: Any, writer: Any, name: str) -> None:
    assert name in names(reader, writer)


def test_schemas_that_recur_are_compared_to_an_end() -> None:
    def tree(value: Schema) -> Schema:
        child = {"$ref": "#"}
        return closed(properties={"value": value, "left": child, "right": child})

    assert names(tree(NUMBER), tree(INTEGER)) == []
    assert set(names(tree(INTEGER), tree(NUMBER))) == {"TYPE_NARROWED"}


def test_choice_is_refused_each_time_it_is_compared() -> None:
    definitions = {"$defs": {"a": TEXT}}
    choice = {"anyOf": [{"$ref": "#/$defs/a"}]}
    reader = closed(properties={"x": choice, "y": choice}, **definitions)
    writer = closed(properties={"x": INTEGER, "y": INTEGER})
    assert names(reader, writer) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"] * 2


def test_reference_leads_to_another_document() -> None:
    reader = {"$ref": "money.json#/$defs/total"}
    documents = {"money.json": {"$defs": {"total": INTEGER}}}
    assert differences(reader, documents, INTEGER, {}) == []
    assert differences(reader, documents, NUMBER, {}) != []
