"""One subscription: the metrics it requests, the clients it matches, and its interval (KIP-714).

Source: `ClientMetricsConfigs` in Apache Kafka. Patterns are RE2's, which take time linear in the
text, whatever their author (`coordinator.patterns`).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from config.catalogue import NamedKey
from config.errors import ConfigError
from config.key import integer, strings
from config.values import parse_value
from coordinator.patterns import Pattern
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.key import Key

ALL: Final = "*"
"""In place of prefixes: every metric."""
LONGEST_PATTERN: Final = 1000
DEFAULT_INTERVAL_MS: Final = 300_000

CLIENT_INSTANCE_ID: Final = "client_instance_id"
CLIENT_ID: Final = "client_id"
CLIENT_SOFTWARE_NAME: Final = "client_software_name"
CLIENT_SOFTWARE_VERSION: Final = "client_software_version"
CLIENT_SOURCE_ADDRESS: Final = "client_source_address"
CLIENT_SOURCE_PORT: Final = "client_source_port"
ATTRIBUTES: Final = {
    *(CLIENT_INSTANCE_ID, CLIENT_ID, CLIENT_SOFTWARE_NAME, CLIENT_SOFTWARE_VERSION),
    *(CLIENT_SOURCE_ADDRESS, CLIENT_SOURCE_PORT),
}
"""Attributes by which a client can be matched."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Rows:
    interval_ms: int = integer(DEFAULT_INTERVAL_MS, low=100, high=3_600_000)
    match: tuple[str, ...] = strings()
    metrics: tuple[str, ...] = strings()


def _named(field: dataclasses.Field[object]) -> NamedKey:
    key: Key = field.metadata["key"]
    return NamedKey(field.name.replace("_", "."), field.name, key)


KEYS: Final = {one.name: one for one in map(_named, dataclasses.fields(_Rows))}
"""By name."""
DOCUMENTATION: Final = {
    "interval.ms": "How often clients push, in milliseconds.",
    "match": "Clients that are asked: an attribute, =, and a pattern that it matches as a whole.",
    "metrics": "Prefixes of the metrics that are asked for; * for all.",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Subscription:
    """Requested metrics, interval and matched clients."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Pattern]
    """By attribute."""

    def matches(self, attributes: Mapping[str, str]) -> bool:
        """Return whether it matches a client. Attributes too long for a pattern do not match."""
        try:
            return all(
                name in attributes and pattern.matches(attributes[name])
                for name, pattern in self.patterns.items()
            )
        except ApiError:
            return False


def parse(settings: Mapping[str, str]) -> Subscription:
    """Read a subscription. Raises ApiError INVALID_REQUEST, or INVALID_CONFIG for a pattern."""
    unknown = sorted(settings.keys() - KEYS.keys())
    if unknown:
        reason = f"Unknown client metrics configuration: {unknown[0]}"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    try:
        values = {name: parse_value(name, KEYS[name].key, text) for name, text in settings.items()}
    except ConfigError as error:
        is_of_interval = "interval.ms" in str(error)
        code = ErrorCode.INVALID_REQUEST if is_of_interval else ErrorCode.INVALID_CONFIG
        raise ApiError(code, str(error)) from error
    interval_ms, metrics, match = (values.get(n) for n in ("interval.ms", "metrics", "match"))
    assert isinstance(interval_ms, int | None)
    assert isinstance(metrics, tuple | None)
    assert isinstance(match, tuple | None)
    patterns = dict(map(_parse_match, match or ()))
    return Subscription(metrics or (), interval_ms or DEFAULT_INTERVAL_MS, patterns)


def _parse_match(text: str) -> tuple[str, Pattern]:
    parts = [part.strip() for part in text.split("=")]
    if len(parts) == 2 and parts[0] in ATTRIBUTES:  # noqa: PLR2004  (name and pattern)
        try:
            return parts[0], Pattern(parts[1], LONGEST_PATTERN, "Client matching pattern")
        except ApiError:
            pass
    raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
