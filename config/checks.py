"""Constraints between several broker keys; each key alone is checked by its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.errors import ConfigError, invalid
from config.listeners.endpoints import read_address_limits, read_listeners
from config.passwords.encoder import configured_encoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.broker import BrokerConfig


def _bounded(prefix: str, *names: str) -> Iterator[tuple[str, str]]:
    """Keys between `PREFIX.min.NAME` and `PREFIX.max.NAME`."""
    for name in names:
        yield f"{prefix}.min.{name}", f"{prefix}.{name}"
        yield f"{prefix}.{name}", f"{prefix}.max.{name}"


# (smaller key, larger key): the first may not exceed the second.
_ORDERED = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    *_bounded(
        "group.consumer", "session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"
    ),
    *_bounded(
        "group.share", "session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"
    ),
    *_bounded(
        "group.share",
        "delivery.count.limit",
        "partition.max.record.locks",
        "record.lock.duration.ms",
    ),
    *_bounded(
        "group.streams", "session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"
    ),
    ("group.share.max.size", "group.share.max.share.sessions"),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    ("group.streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
    ("group.streams.min.task.offset.interval.ms", "group.streams.task.offset.interval.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
)

# (smaller key, larger key): the first must be less than the second.
_BELOW = tuple(
    (f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")
    for kind in ("consumer", "share", "streams")
)

_NO_ZERO = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


SMALLEST_MAP_BYTES = 1 << 20
REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"
RACK_TAGS = "group.streams.rack.aware.assignment.tags"

GENERATED_ID = -1
"""Stands for an id that is yet to be generated."""

ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def problems_together(config: BrokerConfig) -> Iterator[ConfigError]:
    """Find everything that does not fit."""
    yield from _disordered(config)
    yield from (
        invalid(name, 0, "it must be unlimited (-1) or at least 1")
        for name in _NO_ZERO
        if config.value_of(name) == 0
    )
    yield from _cramped_cleaner(config)
    for check in (
        _check_identity,
        _check_log_dirs,
        _check_groups,
        _check_connections,
        _check_listeners,
        _check_limits,
        _check_authorizer,
        _check_passwords,
    ):
        try:
            check(config)
        except ConfigError as problem:
            yield problem


def _disordered(config: BrokerConfig) -> Iterator[ConfigError]:
    for smaller, larger in _ORDERED:
        low, high = _integers(config, smaller, larger)
        if low > high:
            why = f"{smaller} ({low}) must not be more than {larger} ({high})"
            yield ConfigError(why, smaller, larger)
    for smaller, larger in _BELOW:
        low, high = _integers(config, smaller, larger)
        if low >= high:
            why = f"{smaller} ({low}) must be less than {larger} ({high})"
            yield ConfigError(why, smaller, larger)


def _integers(config: BrokerConfig, *names: str) -> Iterator[int]:
    for name in names:
        value = config.value_of(name)
        assert isinstance(value, int)
        yield value


def _cramped_cleaner(config: BrokerConfig) -> Iterator[ConfigError]:
    size, threads = config.log_cleaner_dedupe_buffer_size, max(1, config.log_cleaner_threads)
    if size // threads <= SMALLEST_MAP_BYTES:
        why = f"it must be more than {SMALLEST_MAP_BYTES} for each of log.cleaner.threads"
        name = "log.cleaner.dedupe.buffer.size"
        yield ConfigError(str(invalid(name, size, why)), name, "log.cleaner.threads")


def _check_identity(config: BrokerConfig) -> None:
    if config.broker_id < 0 and not config.broker_id_generation_enable:
        why = "without broker.id.generation.enable it must be at least 0"
        raise invalid("broker.id", config.broker_id, why)
    if config.broker_id < GENERATED_ID:
        raise invalid("broker.id", config.broker_id, f"it must be at least {GENERATED_ID}")
    if config.broker_id_generation_enable and config.broker_id > config.reserved_broker_max_id:
        why = f"ids above reserved.broker.max.id ({config.reserved_broker_max_id}) are generated"
        raise invalid("broker.id", config.broker_id, why)
    if "node.id" in config.stated and config.node_id != config.broker_id:
        raise invalid("node.id", config.node_id, f"it differs from broker.id ({config.broker_id})")


def _check_log_dirs(config: BrokerConfig) -> None:
    if config.stated.get("log.dirs") == "" and "log.dir" not in config.stated:
        raise invalid("log.dirs", "", "it must name at least one directory")
    shown = ",".join(config.log_dirs)
    if "" in config.log_dirs:
        raise invalid("log.dir", shown, "it must not name an empty directory")
    for path in config.log_dirs:
        if config.log_dirs.count(path) > 1:
            raise invalid("log.dirs", shown, f"it names {path} more than once")


def _check_groups(config: BrokerConfig) -> None:
    protocols, tags = REBALANCE_PROTOCOLS, RACK_TAGS
    if "classic" not in config.group_coordinator_rebalance_protocols:
        raise ConfigError(
            f"{protocols}: disabling the 'classic' protocol is not supported", protocols
        )
    named = config.group_streams_rack_aware_assignment_tags
    if len(set(named)) < len(named):
        raise ConfigError(f"{tags} must not contain duplicate tag keys.", tags)


def _check_connections(config: BrokerConfig) -> None:
    queued, largest = config.queued_max_request_bytes, config.socket_request_max_bytes
    if 0 < queued < largest:
        names = ("queued.max.request.bytes", "socket.request.max.bytes")
        why = f"{names[0]} ({queued}) must not be less than {names[1]} ({largest})"
        raise ConfigError(why, *names)
    delay_ms, idle_ms = (
        config.connection_failed_authentication_delay_ms,
        config.connections_max_idle_ms,
    )
    if 0 <= idle_ms <= delay_ms:
        names = ("connections.max.idle.ms", "connection.failed.authentication.delay.ms")
        why = f"{names[0]} ({idle_ms}) must be more than {names[1]} ({delay_ms})"
        raise ConfigError(why, *names)
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        names = ("max.connections.per.ip", "max.connections.per.ip.overrides")
        raise ConfigError(f"{names[0]} can be 0 only if {names[1]} is set", *names)


def _check_listeners(config: BrokerConfig) -> None:
    read_listeners(config)


def _check_passwords(config: BrokerConfig) -> None:
    configured_encoder(config, bytes)  # no random bytes are drawn here


def _check_limits(config: BrokerConfig) -> None:
    read_address_limits(config)


def _check_authorizer(config: BrokerConfig) -> None:
    name = config.authorizer_class_name
    if name not in ("", ACL_AUTHORIZER, STANDARD_AUTHORIZER):
        why = f"it must be {STANDARD_AUTHORIZER} or {ACL_AUTHORIZER}; other classes are Java's"
        raise invalid("authorizer.class.name", name, why)
