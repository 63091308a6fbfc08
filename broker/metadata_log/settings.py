"""Settings of the metadata log, and of the way to its quorum, out of a broker's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker.network.broker_link import LinkLimits
from config.errors import ConfigError, invalid
from config.listeners.addresses import split_address
from controller.raft.requests import RequestLimits
from storage.metadata_log.metadata_log import MetadataLogSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.network.links import Address
    from config.broker import BrokerConfig


class SnapshotSettings(NamedTuple):
    """Limits after which this node makes a snapshot, whichever comes first."""

    max_bytes: int = 20 << 20
    max_interval_ms: int = 3_600_000
    """0 for no limit."""


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """All settings of an observer."""

    bootstrap: tuple[Address, ...]
    """Addresses at which the quorum may be found."""
    voters: Mapping[int, Address]
    """Controllers of a static quorum, by id."""
    links: LinkLimits
    requests: RequestLimits
    log: MetadataLogSettings
    snapshots: SnapshotSettings
    fetch_timeout_ms: int
    retry_backoff_ms: int
    listener: str = ""
    """Listener of controllers that brokers use; any, if none is named."""
    delete_delay_ms: int = 60_000
    """Time for which renamed files stay."""


def metadata_settings(config: BrokerConfig) -> MetadataSettings:
    """Read the settings; raises ConfigError if the configuration names no controller."""
    voters = dict(map(_voter, config.controller_quorum_voters))
    bootstrap = tuple(
        _address("controller.quorum.bootstrap.servers", text, text)
        for text in config.controller_quorum_bootstrap_servers
    )
    if not (bootstrap or voters):
        keys = ("controller.quorum.bootstrap.servers", "controller.quorum.voters")
        raise ConfigError(f"{' and '.join(keys)} are empty: one of them names controllers", *keys)
    segment_bytes = config.internal_metadata_log_segment_bytes or config.metadata_log_segment_bytes
    return MetadataSettings(
        bootstrap or tuple(voters.values()),
        voters,
        LinkLimits(config.controller_quorum_request_timeout_ms, config.socket_request_max_bytes),
        RequestLimits(
            fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
            snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        ),
        MetadataLogSettings(
            segment_bytes,
            config.metadata_log_segment_ms,
            config.metadata_max_retention_bytes,
            config.metadata_max_retention_ms,
        ),
        SnapshotSettings(
            config.metadata_log_max_record_bytes_between_snapshots,
            config.metadata_log_max_snapshot_interval_ms,
        ),
        config.controller_quorum_fetch_timeout_ms,
        config.controller_quorum_retry_backoff_ms,
        next(iter(config.controller_listener_names), ""),
        config.internal_metadata_delete_delay_millis,
    )


def _voter(text: str) -> tuple[int, Address]:
    """`id@host:port`."""
    number, separator, address = text.partition("@")
    if not separator or not number.isdecimal():
        raise invalid("controller.quorum.voters", text, "a voter is written id@host:port")
    return int(number), _address("controller.quorum.voters", text, address)


def _address(key: str, text: str, address: str) -> Address:
    try:
        return split_address(address)
    except ValueError as error:
        raise invalid(key, text, str(error)) from None
