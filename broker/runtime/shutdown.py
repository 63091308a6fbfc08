"""Steps of a start, and the undoing of each, even if others fail.

The logs are closed in one of the last steps. If an earlier step could end the whole, the next start
would have to recover them all.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from typing import TYPE_CHECKING

from controller.metadata_store.store import StoreError
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)


class UndoStack:
    """Steps that are taken last in, first out; in each of them all below it are still to come."""

    def __init__(self) -> None:
        self._steps = contextlib.AsyncExitStack()
        self._interruption: BaseException | None = None

    def push(self, name: str, step: Callable[[], object]) -> None:
        """Have `step` run before all steps pushed so far.

        `name` describes it in the log. An awaitable that the step returns is awaited.
        """
        self._steps.push_async_callback(self._take, name, step)

    async def undo(self) -> None:
        """Take all steps. Errors are logged; the first interruption is raised in the end."""
        await self._steps.aclose()
        if self._interruption is not None:
            raise self._interruption

    async def _take(self, name: str, step: Callable[[], object]) -> None:
        try:
            outcome = step()
            if inspect.isawaitable(outcome):
                await outcome
        except (ApiError, OSError, StoreError) as error:
            logger.warning("shutdown: %s failed, continuing: %s", name, error)
        except Exception:
            logger.exception("shutdown: %s failed, continuing", name)
        except BaseException as error:  # noqa: BLE001 - a cancellation, say: it waits for the logs
            if self._interruption is None:
                self._interruption = error
