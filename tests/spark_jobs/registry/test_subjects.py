"""The state that records of `_schemas` replay to, as Confluent's registry writes them."""

from __future__ import annotations

import pytest

from spark_jobs.registry.schema_records import SchemaVersion, schema_record
from spark_jobs.registry.subjects import Subjects

KEY = b'{"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}'
VALUE = (
    b'{"subject":"a-value","version":1,"id":4,"schemaType":"JSON","schema":"{}","deleted":false}'
)


def test_record_is_in_confluents_format() -> None:
    record = schema_record(SchemaVersion("a-value", 1, 4, "{}", "JSON"))
    assert (record.key, record.value) == (KEY, VALUE)


def test_version_comes_back_from_its_record() -> None:
    state = Subjects()
    state.replay(KEY, VALUE)
    assert state.of("a-value") == [SchemaVersion("a-value", 1, 4, "{}", "JSON")]
    assert state.highest_id == 4


def test_tombstone_takes_a_version_away_and_keeps_its_id_used() -> None:
    state = Subjects()
    state.replay(KEY, VALUE)
    state.replay(KEY, None)
    assert state.versions == {}
    assert state.highest_id == 4


def test_deletion_of_a_subject_reaches_to_its_version() -> None:
    state = Subjects()
    state.replay(KEY, VALUE)
    state.replay(KEY.replace(b"1,", b"2,"), VALUE.replace(b'"version":1', b'"version":2'))
    key = b'{"keytype":"DELETE_SUBJECT","subject":"a-value","magic":0}'
    state.replay(key, b'{"subject":"a-value","version":1}')
    assert [found.version for found in state.of("a-value")] == [2]
    assert len(state.of("a-value", deleted=True)) == 2


def test_settings_come_and_go_with_their_records() -> None:
    state = Subjects()
    key = b'{"keytype":"CONFIG","subject":null,"magic":0}'
    state.replay(key, b'{"compatibilityLevel":"FULL","normalize":true}')
    assert (state.compatibility("a"), state.normalizes("a")) == ("FULL", True)
    state.replay(key, None)
    assert (state.compatibility("a"), state.normalizes("a")) == ("BACKWARD", False)
    state.replay(b'{"keytype":"MODE","subject":"a","magic":0}', b'{"mode":"READONLY"}')
    assert (state.mode("a"), state.mode("b")) == ("READONLY", "READWRITE")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"[]", None),
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b'{"id":1}'),
        (b'{"keytype":"CONTEXT","magic":0}', b"{}"),
        (KEY, b"not JSON"),
    ],
)
def test_what_is_not_the_registrys_is_passed_over(key: bytes | None, value: bytes | None) -> None:
    state = Subjects()
    state.replay(key, value)
    assert state == Subjects()
