"""Configurations out of Apache's keys, as the certificates of tests name them."""

from __future__ import annotations

from typing import Any

from config.broker import BrokerConfig


def config_of(keys: dict[str, str], **more: Any) -> BrokerConfig:
    values: dict[str, Any] = {key.replace(".", "_"): value for key, value in keys.items()}
    return BrokerConfig(**values | more)
