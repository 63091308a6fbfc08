"""Waits for shards that are being loaded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.coordinators.shards import Shards


async def until_loaded(shards: Shards[Any]) -> None:
    """Return once no shard is loading."""
    while shards.is_loading:
        await asyncio.sleep(0)  # noqa: TID251
