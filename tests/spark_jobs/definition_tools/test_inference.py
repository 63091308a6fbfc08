"""A definition from a sample: what it says, and that all of the sample is valid by it."""

from __future__ import annotations

import json
import random
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.definition_tools.definition_check import checked
from spark_jobs.definition_tools.definition_file import DefinitionFile
from spark_jobs.definition_tools.inference import inferred
from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import JobError
from tests.spark_jobs.definitions.kafka_rows import kafka_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

ORDERS: list[dict[str, Any]] = [
    {
        "order-id": 1,
        "placed_at": "2013-03-01T10:00:00Z",
        "seen_ms": 1362130205123,
        "day": "2013-03-01",
        "items": [{"sku": "a", "price": 1.5}, {"sku": "b", "price": 2, "note": None}],
        "key": "x",
        "mixed": 1,
    },
    {
        "order-id": 2**63,
        "placed_at": "2013-03-01T10:00:00.5-05:00",
        "seen_ms": 1362130205124,
        "day": None,
        "items": [],
        "key": "y",
        "mixed": "1",
        "gift": True,
    },
]


def _sample(objects: list[Any]) -> list[tuple[bytes | None, bytes | None]]:
    return [(None, json.dumps(one).encode()) for one in objects]


def _fields(objects: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(inferred(_sample(objects), "t"))["record"]["fields"]
    return found


def test_types_are_the_narrowest_that_all_values_have() -> None:
    definition = tomllib.loads(inferred(_sample(ORDERS), "orders"))
    assert definition["record"]["event_time"] == "placed_at"
    note = {"type": "json", "optional": True}
    assert definition["record"]["fields"] == {
        "order_id": {"key": "order-id", "type": "decimal(38,0)"},
        "placed_at": {"type": "timestamp"},
        "seen_ms": {"type": "timestamp", "unit": "milliseconds"},
        "day": {"type": "date", "nullable": True},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "fields": {"sku": {"type": "text"}, "price": {"type": "number"}, "note": note},
            },
        },
        "key_": {"key": "key", "type": "text"},
        "mixed": {"type": "json"},
        "gift": {"type": "boolean", "optional": True},
    }


def test_an_object_with_many_rare_keys_is_a_map() -> None:
    objects = [{"counts": {f"page {at}": at}} for at in range(30)]
    assert _fields(objects)["counts"] == {"type": "map", "values": {"type": "integer"}}


def test_changes_are_inferred_as_rows() -> None:
    change = {"op": "c", "before": None, "after": {"id": 1, "name": "a"}, "ts_ms": 1}
    records = [(b'{"payload": {"id": 1}}', json.dumps({"payload": change}).encode()), (b"{}", None)]
    record = tomllib.loads(inferred(records, "t"))["record"]
    assert (record["envelope"], record["key"]) == ("debezium", ["id"])
    assert record["fields"] == {"id": {"type": "integer"}, "name": {"type": "text"}}


def test_what_is_no_object_is_counted_and_left_out() -> None:
    records = [*_sample(ORDERS), (None, b"[1]"), (None, b"{"), (None, b'{"a":1,"a":2}')]
    assert "# 3 of them are no JSON objects" in inferred(records, "t")
    with pytest.raises(JobError, match="none is a JSON object"):
        inferred(records[2:], "t")
    twins = inferred(_sample([{"a": 1, "B": 1, "b": 2}]), "t")
    assert "# No columns for 2 keys: 'B', 'b'" in twins
    assert tomllib.loads(twins)["record"]["unknown_keys"] == "ignore"


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["2013-03-01", "2013-03-01T10:00:00Z", "2013-03-01T10:00:00", "2013-02-30"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(min_size=1, max_size=5), _values, min_size=1), min_size=1))
def test_any_sample_gives_a_definition_that_check_accepts(objects: list[Any]) -> None:
    try:
        definition = inferred(_sample(objects), "t")
    except JobError:
        return  # no key can be a column
    DefinitionFile.model_validate(tomllib.loads(definition))


def _drawn(chance: random.Random, level: int = 0) -> Any:
    """Return a value of any kind, of which neighbours often have one type, and sometimes not."""
    kinds: list[Callable[[], Any]] = [
        lambda: chance.choice([None, True, False]),
        lambda: chance.choice([0, -1, 2**31, 2**63, -(2**63), 2**64, 10**37]),
        lambda: chance.choice([0.5, -1e-7, 1e300, 12.25, 1e22, 3.0]),
        lambda: chance.choice(["", "a", "é😀", "\u0000", "2013-03-01", "10000-01-01", "it's \\"]),
        lambda: f"2013-03-{chance.randint(1, 31)}T0{chance.randint(0, 9)}:00:00Z",
        lambda: f"2013-03-01T0{chance.randint(0, 9)}:00:00.{chance.randint(0, 999):03}",
        lambda: chance.randint(1_400_000_000_000, 1_500_000_000_000),
    ]
    if level < 4:
        kinds += [
            lambda: [_drawn(chance, level + 1) for _ in range(chance.randint(0, 3))],
            lambda: {
                name: _drawn(chance, level + 1)
                for name in ("a", "b-c", "at", "é", "it's", "A b")
                if chance.random() < 0.6
            },
        ]
    return chance.choice(kinds)()


def _drawn_sample(seed: int) -> list[dict[str, Any]]:
    """Return objects of a few shapes, each key with values of one or two kinds."""
    chance = random.Random(seed)
    names = ["id", "price", "At", "created_at", "value", "x y", "tags", "address", "ts_ms", "1st"]
    likes = {name: [_drawn(chance) for _ in range(chance.choice([1, 1, 2]))] for name in names}
    return [
        {name: chance.choice(likes[name]) for name in names if chance.random() < 0.9}
        for _ in range(30)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_is_parsed_by_its_definition_without_a_reject(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    objects = _drawn_sample(seed)
    path = tmp_path / "inferred.toml"
    path.write_text(inferred(_sample(objects), "t"), encoding="utf-8")
    assert checked(path) == []
    values = kafka_rows(spark, [json.dumps(one).encode() for one in objects])
    rows = parsed(spark, values, load_definition(str(path)))
    found = [tuple(row) for row in rows.select("rejection.reason", "rejection.detail").collect()]
    assert found == [(None, None)] * len(objects)
