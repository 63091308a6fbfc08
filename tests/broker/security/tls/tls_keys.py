"""Configurations out of Apache's keys, as the certificates of tests name them."""

from __future__ import annotations

from typing import Any

from config.broker import BrokerConfig

LISTENERS: dict[str, Any] = {
    "listeners": ("EXTERNAL://:9092", "INTERNAL://:9093"),
    "listener_security_protocol_map": "EXTERNAL:SSL,INTERNAL:SASL_SSL",
    "inter_broker_listener_name": "INTERNAL",
}


def config_of(keys: dict[str, str], **more: Any) -> BrokerConfig:
    values: dict[str, Any] = {key.replace(".", "_"): value for key, value in keys.items()}
    return BrokerConfig(**LISTENERS | values | more)
