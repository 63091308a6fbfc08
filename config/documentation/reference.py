"""Writes `docs/configuration.md` from the rows: `python -m config.documentation.reference FILE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from config.broker import BrokerConfig
from config.catalogue import BROKER_KEYS, DYNAMIC_KEYS, GROUP_KEYS, TOPIC_KEYS, NamedKey
from config.documentation.docstrings import (
    document_broker_key,
    document_group_key,
    document_topic_key,
)
from config.key import READ_ONLY
from config.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable

_INTRODUCTION = """\
# Configuration

Every key of broker, topics and groups: type, default, range, and when it can change. Written by
`make reference` from the rows in `config/`. Keys, types, defaults and ranges are those of
Apache Kafka 3.9.1, or of 4.3.1 and 4.4.0 for keys that only these have; where 4.4.0 refuses values
that 3.9.1 takes, they are refused. Keys that Apache Kafka does not have are in a separate section.
At startup, a broker logs a warning for each key without effect, with file and line number.

| mark | meaning |
|---|---|
| ● | the broker acts on it |
| ○ | known, no effect |

A broker key is set in the property file or with `--override key=value`. In
order of precedence: the topic's or the group's own setting, this broker's dynamic setting, the
cluster-wide dynamic default, the property file, the default.
"""

_BROKER_HEADER = "| | key | type | default | valid | change |\n|---|---|---|---|---|---|"
_TOPIC_HEADER = "| | key | type | default | valid | default from |\n|---|---|---|---|---|---|"


def render() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION, "## Topic keys\n", _TOPIC_HEADER]
    parts += [
        _row(named_key, document_topic_key(named_key.attribute), _broker_keys(named_key))
        for named_key in _public(TOPIC_KEYS.values())
    ]
    parts += ["\n## Group keys\n", _TOPIC_HEADER]
    parts += [
        _row(named_key, document_group_key(named_key.attribute), _broker_keys(named_key))
        for named_key in _public(GROUP_KEYS.values())
    ]
    parts.append("\n## Broker keys")
    for table in sorted(BrokerConfig.__bases__, key=lambda table: str(table.__doc__)):
        parts += [f"\n### {str(table.__doc__).rstrip('.')}\n", _BROKER_HEADER]
        parts += [
            _row(named_key, document_broker_key(named_key.attribute), _change(named_key))
            for named_key in _public([*BROKER_KEYS.values(), *DYNAMIC_KEYS.values()])
            if named_key.attribute in table.__annotations__
        ]
    return "\n".join(parts) + "\n"


def _change(named_key: NamedKey) -> str:
    """Return the scope in which the key can change here; narrower for some than in Apache Kafka."""
    key = named_key.key
    return (key.scope if key.is_changeable else READ_ONLY).value


def _public(named_keys: Iterable[NamedKey]) -> list[NamedKey]:
    return [named_key for named_key in named_keys if not named_key.key.internal]


def _row(named_key: NamedKey, documentation: str, last: str) -> str:
    key = named_key.key
    cells = (
        "●" if key.acts else "○",
        "<br>".join((f"`{named_key.name}`", *_paragraphs(documentation))),
        key.type.name.lower(),
        _default(named_key),
        "" if key.rule is None else str(key.rule),
        last,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _paragraphs(documentation: str) -> list[str]:
    """Each on one line: a line break ends a row of a Markdown table."""
    return [" ".join(each.split()) for each in documentation.split("\n\n")]


def _default(named_key: NamedKey) -> str:
    text = format_value(named_key.key.default)
    return "" if not text else f"`{text}`"


def _broker_keys(named_key: NamedKey) -> str:
    return ", ".join(f"`{name}`" for name in named_key.key.broker_keys)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
