"""Announcements of brokers that a log directory failed: nodes in sequence, removed when read.

Path and content: ``/log_dir_event_notification/log_dir_event_0000000003``, ``{"version":1,
"broker":1,"event":1}``.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from controller.store import NoNodeError
from controller.znodes import LOG_DIR_EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.store import MetadataStore

logger = logging.getLogger(__name__)

PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
FAILURE = 1
"""The only event there is."""


async def announce_directory_failure(store: MetadataStore, broker_id: int) -> None:
    """Have the controller ask the broker which replicas it lost."""
    content = {"version": 1, "broker": broker_id, "event": FAILURE}
    data = json.dumps(content, separators=(",", ":")).encode()
    await store.create(PREFIX, data, sequence=True)


async def take_announcements(store: MetadataStore, names: Sequence[str]) -> set[int]:
    """Read announcements and remove them; returns the brokers that made them."""
    brokers = set()
    for path in (f"{LOG_DIR_EVENTS}/{name}" for name in names):
        try:
            node = await store.get(path)
            await store.delete(path)
        except NoNodeError:
            continue
        try:
            brokers.add(int(json.loads(node.data or b"")["broker"]))
        except (ValueError, KeyError, TypeError):
            logger.warning("%s is ignored: it holds %r", path, node.data)
    return brokers
