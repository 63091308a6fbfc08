"""What becomes of requests that change the registry, decided on states that records replay to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.registry import registration, settings
from spark_jobs.registry.registration import Candidate
from spark_jobs.registry.registry_errors import RegistryError
from spark_jobs.registry.schema_records import Reference
from spark_jobs.registry.subjects import Subjects
from tests.spark_jobs.registry.schema_texts import (
    ORDER,
    ORDER_WITH_NOTE,
    ORDER_WITH_TOTAL,
    avro,
)

if TYPE_CHECKING:
    from spark_jobs.registry.registration import Decision


@dataclass
class Registry:
    """A state that takes its own records, as the topic gives them back."""

    state: Subjects = field(default_factory=Subjects)

    def did(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.state.replay(record.key, record.value)
        return decision.answer

    def register(self, subject: str, schema: str, **more: Any) -> Any:
        return self.did(registration.register(self.state, subject, Candidate(schema, **more)))

    def delete(self, subject: str, *, permanent: bool = False) -> Any:
        return self.did(registration.delete_subject(self.state, subject, permanent=permanent))

    def delete_version(self, subject: str, version: str, *, permanent: bool = False) -> Any:
        decision = registration.delete_version(self.state, subject, version, permanent=permanent)
        return self.did(decision)

    def level(self, subject: str | None, level: str) -> None:
        self.did(settings.set_config(self.state, subject, {"compatibility": level}))

    def mode(self, subject: str | None, mode: str, *, force: bool = False) -> None:
        self.did(settings.set_mode(self.state, subject, {"mode": mode}, force=force))

    def versions(self, subject: str) -> list[tuple[int, int]]:
        return [(version.version, version.id) for version in self.state.of(subject)]


@pytest.fixture
def registry() -> Registry:
    return Registry()


def refused(code: int) -> Any:
    return pytest.raises(RegistryError, check=lambda error: error.code == code)


def test_schema_that_is_there_is_given_its_id_and_no_record(registry: Registry) -> None:
    assert registry.register("a", ORDER) == 1
    spaced = json.dumps(json.loads(ORDER), indent=4)
    assert registration.register(registry.state, "a", Candidate(spaced)).records == ()
    assert registry.register("a", spaced) == 1


def test_same_schema_has_one_id_in_all_subjects(registry: Registry) -> None:
    assert [registry.register(subject, ORDER) for subject in "ab"] == [1, 1]
    assert registry.register("b", ORDER_WITH_NOTE) == 2
    assert registry.versions("b") == [(1, 1), (2, 2)]


def test_incompatible_schema_is_refused_with_its_reason(registry: Registry) -> None:
    registry.register("a", ORDER)
    with refused(409) as raised:
        registry.register("a", ORDER_WITH_TOTAL)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in str(raised.value)
    registry.level("a", "NONE")
    assert registry.register("a", ORDER_WITH_TOTAL) == 2


def test_transitive_levels_look_at_all_versions(registry: Registry) -> None:
    first = avro(("id", "long"), ("a", "int"))
    third = avro(("id", "long"), ("a", "string", ""))
    for level, allowed in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        subject = level.lower()
        registry.level(subject, level)
        registry.register(subject, first)
        registry.register(subject, ORDER)
        if allowed:
            registry.register(subject, third)
        else:
            with refused(409):
                registry.register(subject, third)


@pytest.mark.parametrize(
    ("level", "added", "removed"),
    [("BACKWARD", False, True), ("FORWARD", True, False), ("FULL", False, False)],
)
def test_levels_allow_fields_without_default_to_come_or_go(
    registry: Registry, level: str, added: bool, removed: bool
) -> None:
    registry.level(None, level)
    for old, new, allowed in (
        (ORDER, ORDER_WITH_TOTAL, added),
        (ORDER_WITH_TOTAL, ORDER, removed),
    ):
        subject = f"{allowed}-{len(old)}"
        registry.register(subject, old)
        if allowed:
            registry.register(subject, new)
        else:
            with refused(409):
                registry.register(subject, new)


def test_type_of_a_subjects_schemas_cannot_change(registry: Registry) -> None:
    registry.register("a", ORDER)
    with refused(409):
        registry.register("a", '{"type":"object"}', type="JSON")


def test_soft_deleted_schema_comes_back_as_a_new_version_with_its_id(registry: Registry) -> None:
    registry.register("a", ORDER)
    assert registry.delete("a") == [1]
    assert registry.versions("a") == []
    assert registry.state.of_id(1)
    assert registry.register("a", ORDER) == 1
    assert registry.versions("a") == [(2, 1)]


def test_deletion_for_ever_needs_a_soft_one_before(registry: Registry) -> None:
    with refused(40401):
        registry.delete("a")
    registry.register("a", ORDER)
    with refused(40405):
        registry.delete("a", permanent=True)
    registry.delete("a")
    with refused(40404):
        registry.delete("a")
    assert registry.delete("a", permanent=True) == [1]
    assert "a" not in registry.state.versions
    assert registry.register("b", ORDER) == 2, "an id is not given twice"


def test_version_is_deleted_softly_and_then_for_ever(registry: Registry) -> None:
    registry.register("a", ORDER)
    registry.register("a", ORDER_WITH_NOTE)
    with refused(40407):
        registry.delete_version("a", "1", permanent=True)
    assert registry.delete_version("a", "latest") == 2
    with refused(40406):
        registry.delete_version("a", "2")
    assert registry.delete_version("a", "2", permanent=True) == 2
    with refused(40402):
        registry.delete_version("a", "2")
    assert registry.versions("a") == [(1, 1)]


def test_deleted_subject_loses_its_settings(registry: Registry) -> None:
    registry.register("a", ORDER)
    registry.level("a", "NONE")
    registry.delete("a")
    assert registry.state.compatibility("a") == "BACKWARD"


def test_references_are_found_and_keep_what_they_name(registry: Registry) -> None:
    registry.register("address", avro(("street", "string"), name="Address"))
    there = (Reference("Address", "address", 1),)
    customer = avro(("home", "Address"), name="Customer")
    with refused(42201):
        registry.register("customer", customer)
    assert registry.register("customer", customer, references=there) == 2
    assert [found.id for found in registry.state.referring_to("address", 1)] == [2]
    with refused(42206):
        registry.delete("address")
    with refused(42201):
        registry.register("b", customer, references=(Reference("Address", "address", 7),))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", ""),
        ("AVRO", "{"),
        ("AVRO", '{"type":"record"}'),
        ("AVRO", "[" * 100_000),
        ("JSON", '{"type":"nothing"}'),
        ("JSON", "[]"),
        ("XML", "<a/>"),
    ],
)
def test_text_that_is_no_schema_is_refused(registry: Registry, kind: str, text: str) -> None:
    with refused(42201):
        registry.register("a", text, type=kind)


@pytest.mark.parametrize("text", ["0", "-2", "abc", "2147483648", "1.0", "٣", ""])
def test_version_that_can_be_none_is_refused(registry: Registry, text: str) -> None:
    registry.register("a", ORDER)
    with refused(42202):
        registration.version_of(registry.state, "a", text)


def test_normalised_schemas_are_the_same_whatever_their_order(registry: Registry) -> None:
    one = '{"type":"record","name":"A","fields":[],"b":1,"a":2}'
    other = '{"a":2,"b":1,"fields":[],"name":"A","type":"record"}'
    assert registry.register("a", one, normalize=True) == 1
    assert registry.register("a", other, normalize=True) == 1
    assert registry.register("b", one) == 2


def test_read_only_subject_takes_no_change(registry: Registry) -> None:
    registry.register("a", ORDER)
    registry.mode("a", "READONLY")
    with refused(42205):
        registry.register("a", ORDER_WITH_NOTE)
    with refused(42205):
        registry.delete("a")
    assert registry.register("b", ORDER) == 1


def test_ids_are_given_by_the_client_in_import_mode_alone(registry: Registry) -> None:
    with refused(42205):
        registry.register("a", ORDER, id=7)
    registry.mode("a", "IMPORT")
    assert registry.register("a", ORDER, id=7, version=3) == 7
    assert registry.versions("a") == [(3, 7)]
    with refused(42205):
        registry.register("a", ORDER_WITH_TOTAL, id=7)
    registry.mode("a", "READWRITE")
    assert registry.register("a", ORDER_WITH_NOTE) == 8
    with refused(42205):
        registry.mode(None, "IMPORT")


def test_settings_are_refused_and_missed_with_confluents_codes(registry: Registry) -> None:
    with refused(42203):
        registry.level(None, "SIDEWAYS")
    with refused(42204):
        registry.mode(None, "SLOW")
    with refused(40408):
        settings.config_of(registry.state, "a", default_to_global=False)
    with refused(40409):
        settings.mode_of(registry.state, "a", default_to_global=False)
    registry.level(None, "full")
    found = settings.config_of(registry.state, "a", default_to_global=True)
    assert found == {"compatibilityLevel": "FULL"}
