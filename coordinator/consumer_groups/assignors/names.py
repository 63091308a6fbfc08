"""`group.consumer.assignors`: by name, or by the name of Apache Kafka's class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
NAMES: Final[Mapping[str, str]] = {
    "uniform": "uniform",
    "range": "range",
    f"{PACKAGE}UniformAssignor": "uniform",
    f"{PACKAGE}RangeAssignor": "range",
}


def assignor_names(configured: Iterable[str]) -> tuple[str, ...]:
    """The names that clients use; the first is the default. Raises ConfigError."""
    names = []
    for each in configured:
        if each not in NAMES:
            reason = "there are uniform and range; others are classes of Java"
            raise invalid("group.consumer.assignors", each, reason)
        names.append(NAMES[each])
    if not names:
        raise invalid("group.consumer.assignors", "", "there must be one at least")
    return tuple(dict.fromkeys(names))
