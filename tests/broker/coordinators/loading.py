"""Waits for shards that are being loaded, or forget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.coordinators.shards import Shards


async def until_loaded(shards: Shards[Any]) -> None:
    """Return once no shard is loading."""
    while shards.is_loading:
        await asyncio.sleep(0)  # noqa: TID251


async def until_forgotten() -> None:
    """Return once no shard is forgetting deleted topics."""
    while any("of deleted topics" in task.get_name() for task in asyncio.all_tasks()):
        await asyncio.sleep(0)  # noqa: TID251
