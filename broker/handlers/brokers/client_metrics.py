"""CLIENT_METRICS resources: describing and changing the metrics requested of clients (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.telemetry.subscription import DOCUMENTATION, KEYS, parse
from broker.telemetry.subscriptions import MOST
from config.values import format_value, normal_text
from protocol.errors import ApiError, ErrorCode
from protocol.messages.configs import DescribeConfigsResponse

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker.requests.services import BrokerServices
    from controller.brokers.dynamic_configs import Alteration

Config = DescribeConfigsResponse.Result.Config

SET, DEFAULT = 7, 5
"""Config sources."""
UNSUPPORTED: Final = "Client metrics are not supported with ZooKeeper."


def described(
    broker: BrokerServices, name: str, keys: Collection[str] | None, *, with_synonyms: bool
) -> list[Config]:
    """Keys of a subscription, all or the requested ones; defaults if it does not exist.

    Raises ApiError INVALID_REQUEST.
    """
    _require(broker)
    if not name:
        reason = "Client metrics subscription name must not be empty"
        raise ApiError(ErrorCode.INVALID_REQUEST, reason)
    settings = broker.client_metrics.settings(name)
    return [
        _described(key, settings, with_synonyms=with_synonyms)
        for key in KEYS
        if keys is None or key in keys
    ]


def _described(name: str, settings: Mapping[str, str], *, with_synonyms: bool) -> Config:
    key, is_set = KEYS[name].key, name in settings
    value = normal_text(name, key, settings[name]) if is_set else format_value(key.default)
    source = SET if is_set else DEFAULT
    shows_own = is_set and with_synonyms
    return Config(
        name=name,
        value=value,
        read_only=False,
        is_default=source == DEFAULT,
        config_source=source,
        is_sensitive=False,
        synonyms=[Config.Synonym(name=name, value=value, source=SET)] if shows_own else [],
        config_type=int(key.type),
        documentation=DOCUMENTATION[name],
    )


def checked(broker: BrokerServices, name: str, change: Alteration) -> Alteration:
    """A checked change of a subscription; one without any setting does not exist.

    Raises ApiError, and so does the returned alteration.
    """
    _require(broker)
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    names = broker.client_metrics.names

    def alter(before: Mapping[str, str]) -> Mapping[str, str]:
        settings = change(before)
        parse(settings)
        if settings and not before and len(names) >= MOST:
            reason = f"There are {MOST} client metrics subscriptions already."
            raise ApiError(ErrorCode.POLICY_VIOLATION, reason)
        return settings

    return alter


def _require(broker: BrokerServices) -> None:
    if broker.is_in_cluster:
        raise ApiError(ErrorCode.INVALID_REQUEST, UNSUPPORTED)
