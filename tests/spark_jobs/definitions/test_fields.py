"""What a field of a definition may say, and the words for what it may not."""

from __future__ import annotations

import tomllib

import pytest
from pydantic import ValidationError

from spark_jobs.definitions.field_sql import column_type, object_pattern, raw_struct
from spark_jobs.definitions.fields import DEEPEST, Field


def _field(toml: str) -> Field:
    return Field.model_validate(tomllib.loads(toml))


def _words(toml: str) -> str:
    with pytest.raises(ValidationError) as raised:
        _field(toml)
    return str(raised.value.errors()[0]["msg"]).removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("toml", "column"),
    [
        ('type = "integer"', "bigint"),
        ('type = "number"', "double"),
        ('type = "text"', "string"),
        ('type = "boolean"', "boolean"),
        ('type = "decimal(12, 2)"', "decimal(12,2)"),
        ('type = "date"', "date"),
        ('type = "timestamp"', "timestamp"),
        ('type = "local timestamp"', "timestamp_ntz"),
        ('type = "binary"', "binary"),
        ('type = "json"', "string"),
        ('type = "array"\nitems = { type = "date" }', "array<date>"),
        ('type = "map"\nvalues = { type = "number" }', "map<string,double>"),
        (
            'type = "object"\nfields.a = { type = "text", key = "a-b" }\nfields.b.type = "date"',
            "struct<a:string,b:date>",
        ),
    ],
)
def test_each_type_has_a_column_type_of_spark(toml: str, column: str) -> None:
    assert column_type(_field(toml)) == column


def test_json_is_read_by_its_own_keys() -> None:
    fields = {"a": _field('type = "decimal(9,2)"\nkey = "a`-\'b"')}
    assert raw_struct(fields) == "struct<`a``-'b`:decimal(38,2)>"
    assert r"`a``\\-\'b`: " in object_pattern(fields)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('type = "string"', "unknown type, did you mean 'text'?"),
        ('type = "intger"', "unknown type, did you mean 'integer'?"),
        ('type = "decimal"', "unknown type, did you mean 'decimal(P,S)'?"),
        ('type = "decimal(39,2)"', "a decimal has 1 to 38 digits"),
        ('type = "decimal(2,3)"', "a decimal has 1 to 38 digits"),
        ('type = "array"', "the array lacks 'items'"),
        ('type = "map"', "the map lacks 'values'"),
        ('type = "object"', "the object lacks 'fields'"),
        ('type = "text"\nitems = { type = "text" }', "'items' is not for text, but for array"),
        ('type = "text"\nlow = 1', "'low' is not for text"),
        ('type = "integer"\nlow = 3\nhigh = 2', "nothing lies between 'low' and 'high'"),
        ('type = "integer"\nlow = 2013-01-01', "'2013-01-01' does not bound a integer"),
        ('type = "date"\nlow = 5', "'5' does not bound a date"),
        ('type = "timestamp"\nlow = 2013-01-01T00:00:00', "lacks an offset"),
        ('type = "text"\npattern = "("', "not a regular expression"),
        ('type = "text"\none_of = [1]', "'one_of' lists values of type text"),
        ('type = "timestamp"\nzone = "New York"', "unknown time zone"),
        ('type = "date"\nunit = "seconds"', "a date counts days"),
        ('type = "timestamp"\nunit = "seconds"\nzone = "UTC"', "a number since 1970 has no zone"),
        ('type = "text"\nkey = ""', "a key is not empty"),
        (
            'type = "object"\nfields.a.type = "text"\nfields.b = { type = "text", key = "A" }',
            "there are two keys 'a'",
        ),
    ],
)
def test_a_mistake_is_named_in_words(toml: str, words: str) -> None:
    assert words in _words(toml)


def test_a_field_may_be_deep_but_not_without_end() -> None:
    def nested(levels: int) -> str:
        return 'type = "array"\nitems' + ".items" * (levels - 2) + '.type = "text"'

    lines = [f'items{".items" * level}.type = "array"' for level in range(DEEPEST - 2)]
    assert _field("\n".join([nested(DEEPEST), *lines])).depth() == DEEPEST
    lines.append(f'items{".items" * (DEEPEST - 2)}.type = "array"')
    assert "more than 30 levels" in _words("\n".join([nested(DEEPEST + 1), *lines]))
