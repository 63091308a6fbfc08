"""Cost of authorisation: microseconds of processor time for each question.

    python -m tests.benchmarks.authorization [--smoke]

A produce request asks once for each topic. The lists are those of a large cluster: 5,000 ACLs, half
of them of prefixes, for 1,000 principals. Each number is the best of several rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker.requests.authorization import is_allowed_on_any, is_allowed_on_topic
from broker.requests.context import Context
from broker.security.acls.acl_authorizer import AclAuthorizer
from config.broker import BrokerConfig
from config.checks import STANDARD_AUTHORIZER
from protocol.acl_types import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PatternType,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from protocol.api_keys import ApiKey
from tests.benchmarks.measurement.timing import best_microseconds, is_smoke_run
from tests.support.broker_parts.services import parts_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ACLS, PRINCIPALS = 5000, 1000
WHO, HOST, NOW_MS = "User:7", "/127.0.0.1", 1_700_000_000_000
LIST = "tenant-7-topic-1007"
PREFIX = "tenant-7-topic-2007"
TOPIC, WRITE = ResourceType.TOPIC, AclOperation.WRITE


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing."""

    name: str
    microseconds: float

    def text(self) -> str:
        """A line of the table."""
        return f"{self.name:48} {self.microseconds:>9.2f}"


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    """Measure, print and return every row."""
    is_smoke = is_smoke_run("What authorisation costs.", arguments)
    rows = []
    print(f"{'':48} {'us':>9}")
    for name, work in _measured():
        work()
        rows.append(Row(name, 0.0 if is_smoke else best_microseconds(work)))
        print(rows[-1].text())
    return rows


def _measured() -> Iterator[tuple[str, Callable[[], object]]]:
    open_to_all, secured = _context(BrokerConfig()), _context(_secured())
    authorizer = secured.broker.authorizer
    assert isinstance(authorizer, AclAuthorizer)
    _fill(authorizer)
    assert is_allowed_on_topic(secured, WRITE, LIST)
    assert is_allowed_on_topic(secured, WRITE, f"{PREFIX}-9")
    yield "no authorizer", partial(is_allowed_on_topic, open_to_all, WRITE, LIST)
    yield "decided before", partial(is_allowed_on_topic, secured, WRITE, LIST)
    yield "any topic, decided before", partial(is_allowed_on_any, secured, WRITE, TOPIC)
    asked = (WHO, HOST, WRITE, TOPIC)
    yield "decided for the first time", partial(authorizer._decide, *asked, f"{PREFIX}-9")
    yield "any topic, for the first time", partial(authorizer._decide_any, *asked)
    one = AccessControlEntry(WHO, WILDCARD, WRITE, PermissionType.ALLOW)
    change = partial(authorizer.replace, ResourcePattern(TOPIC, LIST), [one])
    yield "a change", change


def _secured() -> BrokerConfig:
    return BrokerConfig(authorizer_class_name=STANDARD_AUTHORIZER)


def _context(config: BrokerConfig) -> Context:
    services = parts_in_memory(config).services
    return Context(
        *(services, 9, "a-client", "PLAINTEXT", HOST, WHO, NOW_MS), api_key=ApiKey.PRODUCE
    )


def _fill(authorizer: AclAuthorizer) -> None:
    for number in range(ACLS):
        principal = number % PRINCIPALS
        name = f"tenant-{principal}-topic-{number}"
        kind = PatternType.LITERAL if (number // PRINCIPALS) % 2 else PatternType.PREFIXED
        entry = AccessControlEntry(f"User:{principal}", WILDCARD, WRITE, PermissionType.ALLOW)
        authorizer.replace(ResourcePattern(TOPIC, name, kind), [entry])


if __name__ == "__main__":
    main()
