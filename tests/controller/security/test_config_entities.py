"""Names of users and client ids as they stand in paths, the way Apache Kafka writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.security.config_entities import DEFAULT, ConfigEntity, parse_entity, sanitized

NAMES = st.one_of(st.just(DEFAULT), st.text(st.characters(codec="utf-8"), min_size=1))


@pytest.mark.parametrize(
    ("name", "in_path"),
    [
        ("alice", "alice"),
        ("CN=a b,O=x+y/z", "CN%3Da%20b%2CO%3Dx%2By%2Fz"),
        ("*-_.~", "%2A-_.%7E"),
        ("żółw", "%C5%BC%C3%B3%C5%82w"),
        ("<default>", "%3Cdefault%3E"),
        (DEFAULT, "<default>"),
    ],
)
def test_names_are_percent_encoded_as_the_sanitizer_does(name: str, in_path: str) -> None:
    assert sanitized(name) == in_path


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (ConfigEntity(user="a b"), ("users", "a%20b")),
        (ConfigEntity(user=DEFAULT), ("users", "<default>")),
        (ConfigEntity(user="a", client_id="c/d"), ("users", "a/clients/c%2Fd")),
        (ConfigEntity(user=DEFAULT, client_id=DEFAULT), ("users", "<default>/clients/<default>")),
        (ConfigEntity(client_id="c"), ("clients", "c")),
        (ConfigEntity(ip="10.1.2.3"), ("ips", "10.1.2.3")),
        (ConfigEntity(ip=DEFAULT), ("ips", "<default>")),
    ],
)
def test_an_entity_has_a_path_and_is_read_from_it(
    entity: ConfigEntity, path: tuple[str, str]
) -> None:
    assert (entity.entity_type, entity.entity) == path
    assert parse_entity(*path) == entity


@given(NAMES, NAMES)
def test_every_name_survives_its_path(user: str, client_id: str) -> None:
    for entity in (ConfigEntity(user, client_id), ConfigEntity(user), ConfigEntity(None, user)):
        assert parse_entity(entity.entity_type, entity.entity) == entity


@pytest.mark.parametrize(
    ("entity_type", "entity"),
    [("topics", "orders"), ("users", "a/clients"), ("users", "a/b/c"), ("clients", "a/clients/b")],
)
def test_an_invalid_entity_path_is_parsed_as_none(entity_type: str, entity: str) -> None:
    assert parse_entity(entity_type, entity) is None
