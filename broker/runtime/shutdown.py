"""Stopping, step by step: each step is taken, whatever became of those before it.

The logs are closed in the last one. Were a step before it to end the whole, the next start would
have to recover them all.
"""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING

from controller.metadata_store.store import StoreError
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

logger = logging.getLogger(__name__)

Step = tuple[str, "Callable[[], object]"]
"""What it is to the log's reader, and what to call; an awaitable that it returns is awaited."""


async def take_all(steps: Iterable[Step]) -> None:
    """Take the steps in their order. Errors are logged; an interruption is raised in the end."""
    interruption: BaseException | None = None
    for name, step in steps:
        try:
            outcome = step()
            if inspect.isawaitable(outcome):
                await outcome
        except (ApiError, OSError, StoreError) as error:
            logger.warning("shutdown: %s failed, continuing: %s", name, error)
        except Exception:
            logger.exception("shutdown: %s failed, continuing", name)
        except BaseException as error:  # noqa: BLE001 - a cancellation, say: it waits for the logs
            interruption = error
    if interruption is not None:
        raise interruption
