"""The CPUs that a broker may use (`broker.cpus`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from config.errors import invalid

if TYPE_CHECKING:
    from config.broker import BrokerConfig

_CPUS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MOST_CPUS = 4096
"""Larger numbers are mistakes, and a range up to them would be a list of that size."""


def cpus_of(config: BrokerConfig) -> list[int]:
    """Read `broker.cpus`; nothing is all CPUs. Raises ConfigError."""
    found: dict[int, None] = {}
    for text in filter(None, config.broker_cpus):
        match = _CPUS.fullmatch(text)
        if match is None:
            raise invalid("broker.cpus", text, "CPUs are written as 0,2 or 0-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= _MOST_CPUS:
            why = f"a range goes up, and its end is less than {_MOST_CPUS}"
            raise invalid("broker.cpus", text, why)
        found.update(dict.fromkeys(range(first, last + 1)))
    return list(found)


def share_of_cpus(config: BrokerConfig, number: int) -> list[int]:
    """The CPUs of one of `broker.processes`: neighbours in the list.

    With fewer CPUs than brokers, some share one.
    """
    cpus, count = cpus_of(config), config.broker_processes
    if len(cpus) <= count:
        return cpus[number % len(cpus) :][:1] if cpus else []
    first, last = (len(cpus) * edge // count for edge in (number, number + 1))
    return cpus[first:last]
