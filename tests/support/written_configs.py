"""Configurations written as another broker or a tool writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.brokers.dynamic_configs import alter_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.metadata_store.store import MetadataStore


async def write_config(
    store: MetadataStore, entity_type: str, entity: str, values: Mapping[str, str]
) -> None:
    """Replace an entity's configuration and notify all brokers."""
    await alter_config(store, entity_type, entity, lambda _: values)
