"""The REST interface as clients meet it: answers, content types and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.spark_jobs.registry.schema_texts import (
    ORDER,
    ORDER_WITH_NOTE,
    ORDER_WITH_TOTAL,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.spark_jobs.registry.registry_process import RegistryProcess

pytestmark = pytest.mark.process

Registries = tuple["RegistryProcess", "RegistryProcess"]
MEDIA = "application/vnd.schemaregistry.v1+json"


def test_subject_lives_from_registration_to_deletion(
    registries: Registries, new_name: Callable[[str], str]
) -> None:
    one, other = registries
    subject = new_name("life")
    versions = f"/subjects/{subject}/versions"
    added = one.ask("POST", versions, {"schema": ORDER})
    assert (added.status, added.content_type) == (200, MEDIA)
    schema_id = added.body["id"]
    found = other.ask("GET", f"{versions}/latest").body
    assert {key: found[key] for key in ("subject", "version", "id")} == {
        "subject": subject,
        "version": 1,
        "id": schema_id,
    }
    assert other.ask("POST", f"/subjects/{subject}", {"schema": ORDER}).body == found
    assert one.ask("GET", f"/schemas/ids/{schema_id}").body == {"schema": found["schema"]}
    later = other.ask("POST", versions, {"schema": ORDER_WITH_NOTE}).body
    assert one.ask("GET", f"/schemas/ids/{later['id']}/versions").body == [
        {"subject": subject, "version": 2}
    ]
    assert one.ask("GET", versions).body == [1, 2]
    assert subject in other.ask("GET", "/subjects").body
    assert one.ask("DELETE", f"{versions}/1").body == 1
    assert other.ask("DELETE", f"/subjects/{subject}").body == [2]
    assert one.ask("DELETE", f"/subjects/{subject}?permanent=true").body == [1, 2]
    assert other.ask("GET", versions).status == 404


def test_compatibility_is_asked_for_without_registering(
    registries: Registries, new_name: Callable[[str], str]
) -> None:
    one, other = registries
    subject = new_name("compatible")
    path = f"/compatibility/subjects/{subject}/versions"
    assert one.ask("POST", f"{path}/latest", {"schema": ORDER}).body == {"is_compatible": True}
    one.ask("POST", f"/subjects/{subject}/versions", {"schema": ORDER})
    bad = other.ask("POST", f"{path}/latest?verbose=true", {"schema": ORDER_WITH_TOTAL}).body
    assert not bad["is_compatible"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in bad["messages"][0]
    assert other.ask("PUT", f"/config/{subject}", {"compatibility": "forward"}).body == {
        "compatibility": "FORWARD"
    }
    assert one.ask("POST", path, {"schema": ORDER_WITH_TOTAL}).body == {"is_compatible": True}
    assert one.ask("GET", f"/config/{subject}").body == {"compatibilityLevel": "FORWARD"}
    assert one.ask("DELETE", f"/config/{subject}").body == {"compatibilityLevel": "FORWARD"}
    assert other.ask("POST", f"{path}/7", {"schema": ORDER}).body["error_code"] == 40402


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/nothing", None, 404),
        ("PUT", "/subjects", None, 405),
        ("GET", "/subjects/none/versions", None, 40401),
        ("GET", "/subjects/none/versions/1", None, 40401),
        ("GET", "/subjects/none/versions/x", None, 42202),
        ("POST", "/subjects/none", {"schema": ORDER}, 40401),
        ("GET", "/schemas/ids/999999", None, 40403),
        ("GET", "/schemas/ids/x", None, 40403),
        ("DELETE", "/subjects/none", None, 40401),
        ("GET", "/config/none", None, 40408),
        ("GET", "/mode/none", None, 40409),
        ("PUT", "/config", {"compatibility": "SIDEWAYS"}, 42203),
        ("PUT", "/mode", {"mode": "SLOW"}, 42204),
        ("POST", "/subjects/none/versions", {"schema": "{"}, 42201),
        ("POST", "/subjects/none/versions", {}, 42201),
        ("POST", "/subjects/none/versions", {"schema": ORDER, "ruleSet": {"a": 1}}, 42201),
        ("POST", "/subjects/none/versions", {"schema": ORDER, "references": [{}]}, 42201),
        ("POST", "/subjects/none/versions", {"schema": ORDER, "references": 7}, 42201),
        ("POST", "/subjects/none/versions", {"schema": ORDER, "id": "x"}, 42201),
        ("POST", "/subjects/none/versions", b"{", 400),
        ("POST", "/subjects/none/versions", b"[]", 400),
        ("POST", "/subjects/none/versions", b"[" * 100_000, 400),
        ("POST", "/subjects/none/versions", b" " * 1_000_001, 413),
        ("GET", "/subjects?offset=x", None, 400),
    ],
)
def test_request_that_cannot_be_done_has_confluents_code(
    registries: Registries, method: str, path: str, body: Any, code: int
) -> None:
    answer = registries[0].ask(method, path, body)
    assert answer.body["error_code"] == code
    assert answer.status == int(str(code)[:3])
    assert answer.body["message"]


@pytest.mark.parametrize(
    ("accept", "status", "content_type"),
    [
        ("*/*", 200, MEDIA),
        ("application/json", 200, "application/json"),
        ("text/html, application/vnd.schemaregistry+json; q=0.9", 200, None),
        ("text/html", 406, MEDIA),
    ],
)
def test_content_type_is_the_clients_choice(
    registries: Registries, accept: str, status: int, content_type: str | None
) -> None:
    answer = registries[0].ask("GET", "/subjects", accept=accept)
    expected = content_type or "application/vnd.schemaregistry+json"
    assert (answer.status, answer.content_type) == (status, expected)
    assert registries[0].ask("POST", "/subjects/a", b"{}", content_type="text/x").status == 415


@pytest.mark.parametrize("name", ["a/b", "a b", "ä", "a%2Fb", "versions"])
def test_subject_may_have_any_name(registries: Registries, name: str) -> None:
    from urllib.parse import quote

    path = f"/subjects/{quote(name, safe='')}/versions"
    assert registries[0].ask("POST", path, {"schema": ORDER}).status == 200
    assert registries[1].ask("GET", f"{path}/latest").body["subject"] == name
