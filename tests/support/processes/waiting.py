"""Waiting for what another process does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_SECONDS = 0.05


def wait_until(
    is_due: Callable[[], bool], seconds: float, poll_seconds: float = POLL_SECONDS
) -> bool:
    """Poll until it holds, or so many seconds have passed; return whether it does."""
    deadline = time.monotonic() + seconds
    while not is_due():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_seconds)
    return True
