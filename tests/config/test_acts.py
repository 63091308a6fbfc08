"""The keys that the rows mark as acted on are those that the code reads, so no warning lies."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from config.catalogue import BROKER_KEYS, TOPIC_KEYS, NamedKey
from config.groups.limits import BOUNDS

ROOT = Path(__file__).parents[2]

# Besides the broker's own packages: where configuration makes something else of itself.
READERS = (
    *("broker/**/*.py", "controller/*.py", "coordinator/*.py", "storage/**/*.py"),
    "config/passwords/*.py",
    *("config/checks.py", "config/listeners/endpoints.py", "config/loader.py"),
    *("config/machine/*.py", "config/synonyms.py"),
)

# A tool that formats directories for Apache's nodes too, and an observer that no start uses yet:
# what they read, a broker of ours does not act on.
NOT_OF_A_BROKER = {ROOT / "broker/storage", ROOT / "broker/metadata_log"}


@cache
def attributes_read_of_a_configuration() -> frozenset[str]:
    """Name the attributes that are read of anything whose name ends in `config`."""
    found = [path for pattern in READERS for path in ROOT.glob(pattern)]
    paths = [path for path in found if NOT_OF_A_BROKER.isdisjoint(path.parents)]
    return frozenset(
        node.attr
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and own_name(node.value).endswith("config")
    )


def own_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Call(func=ast.Attribute(attr=name)):
            return name
    return ""


def disagreements(keys: list[NamedKey], names_read: set[str]) -> list[str]:
    return [
        f"{name} is {'read' if name in names_read else 'not read'}: say acts={name in names_read}"
        for name, _, key in keys
        if key.acts != (name in names_read)
    ]


def topic_keys_read() -> set[str]:
    read = attributes_read_of_a_configuration()
    return {name for name, attribute, _ in TOPIC_KEYS.values() if attribute in read}


def test_topic_keys_marked_as_acted_on_are_read_by_the_code() -> None:
    assert disagreements([*TOPIC_KEYS.values()], topic_keys_read()) == []


def test_broker_keys_marked_as_acted_on_are_read_by_the_code() -> None:
    read = attributes_read_of_a_configuration()
    topic_defaults = {name for key in topic_keys_read() for name in TOPIC_KEYS[key].key.broker_keys}
    names = {name for name, attribute, _ in BROKER_KEYS.values() if attribute in read}
    bounds = {name for pair in BOUNDS.values() for name in pair if name is not None}
    assert disagreements([*BROKER_KEYS.values()], names | topic_defaults | bounds) == []
