"""The rules as data, without Spark."""

from __future__ import annotations

import pytest

from spark_jobs import rules
from spark_jobs.flights import FIELDS, Field
from spark_jobs.rules import RULES, rejection_sql, route_sql


def test_shape_comes_before_keys_and_keys_before_values() -> None:
    order = [rule.reason for rule in RULES]
    assert order.index("not-json") < order.index("missing-key") < order.index("impossible-number")


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_every_key_must_be_there_and_of_its_type(field: Field) -> None:
    reasons = {rule.reason for rule in rules.KEY_RULES if rule.detail.count(field.name)}
    assert {"missing-key", "wrong-type"} <= reasons


def test_only_nullable_keys_may_be_null() -> None:
    nullable = {"dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time"}
    guarded = {rule.detail.strip("'") for rule in RULES if rule.reason == "null-value"}
    assert {field.name for field in FIELDS} - guarded == nullable


def test_every_rule_is_in_the_sql_once() -> None:
    sql = rejection_sql()
    assert sql.count("named_struct(") == len(RULES)
    assert all(rule.when in sql for rule in RULES)


def test_the_route_depends_on_the_threshold() -> None:
    assert "arr_delay >= 30" in route_sql(30)
