"""Log of denied requests, a line each; and of allowed ones, if enabled.

    Principal = User:alice is Denied operation = READ from host = 10.0.0.1
        on resource = Topic:LITERAL:orders for request = Fetch                   (in one line)

The logger and the words are those of Apache Kafka's authorizers (`kafka.authorizer.logger`), at
INFO for denied and at DEBUG for allowed requests. Strangers determine the number of lines and the
names in them: lines are bounded in number and length, and names cannot break them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.security.line_budget import LineBudget
from controller.security.acl_znodes import in_pascal_case

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.broker import BrokerConfig
    from protocol.acl_types import AclOperation, ResourceType

LONGEST_NAME = 250
"""Length at which names are cut: no topic has a longer one. Fixed, for readability."""

KEY = "audit.log.max.lines.per.second"
_LINE = "Principal = %s is %s operation = %s from host = %s on resource = %s:%s for request = %s"

logger = logging.getLogger("kafka.authorizer.logger")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to authorize."""

    principal: str
    host: str
    """With a leading slash."""
    request: str
    """Name of the request, as `Fetch`."""


class AuditLog:
    """The audit log of one broker; allowed requests do not use up the lines of denied ones."""

    __slots__ = ("_allowed", "_allowed_level", "_denied", "_now_ms", "tells_allowed")

    def __init__(self, config: BrokerConfig, now_ms: Callable[[], int]) -> None:
        """`now_ms` is monotonic."""
        self._now_ms = now_ms
        self._allowed_level = logging.INFO if config.audit_log_allowed else logging.DEBUG
        self.tells_allowed = logger.isEnabledFor(self._allowed_level)
        """True if allowed requests are logged, too; most brokers avoid that cost."""
        self._denied, self._allowed = (
            LineBudget(logger, f"audit log: {word}", config.audit_log_max_lines_per_second, KEY)
            for word in ("Denied", "Allowed")
        )

    def note(
        self,
        asked: Asked,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str | None,
        *,
        is_allowed: bool,
    ) -> None:
        """Write a decision; `name` is None if it was on any resource of the type."""
        budget = self._allowed if is_allowed else self._denied
        if not budget.take(self._now_ms() // 1000):
            return
        pattern = "UNKNOWN:NONE" if name is None else f"LITERAL:{_in_one_line(name)}"
        logger.log(
            self._allowed_level if is_allowed else logging.INFO,
            _LINE,
            _in_one_line(asked.principal),
            "Allowed" if is_allowed else "Denied",
            operation.name,
            asked.host.removeprefix("/"),
            in_pascal_case(resource_type),
            pattern,
            asked.request,
        )


def _in_one_line(name: str) -> str:
    """A name that a client made up, without control characters."""
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}…"
    return name if name.isprintable() else name.encode("unicode_escape").decode()
