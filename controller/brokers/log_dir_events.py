"""Announcements of failed log directories: sequential nodes that brokers write.

Path and content: `/log_dir_event_notification/log_dir_event_0000000003`, ``{"version":1,
"broker":1,"event":1}``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from controller.znodes import LOG_DIR_EVENTS, MalformedZnodeError

if TYPE_CHECKING:
    from controller.metadata_store.store import MetadataStore

PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
FAILURE = 1
"""The only event there is."""


async def announce_directory_failure(store: MetadataStore, broker_id: int) -> None:
    """Announce a failure; the controller then finds out which replicas the broker lost."""
    content = {"version": 1, "broker": broker_id, "event": FAILURE}
    data = json.dumps(content, separators=(",", ":")).encode()
    await store.create(PREFIX, data, sequence=True)


def announcing_broker(path: str, data: bytes | None) -> int:
    """The broker that made an announcement. Raises MalformedZnodeError."""
    try:
        return int(json.loads(data or b"")["broker"])
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedZnodeError(f"{path} holds {data!r}") from error
