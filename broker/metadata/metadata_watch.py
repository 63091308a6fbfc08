"""Waits until this broker's metadata shows the effect of an admin request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.metadata.metadata_cache import MetadataCache
    from broker.runtime.slices import Slices

T = TypeVar("T")


async def wait_for_topics(
    cache: MetadataCache, names: Iterable[str], is_shown: Callable[[str], bool], timeout_ms: int
) -> set[str]:
    """Wait until all topics are as requested; returns those that are not in time.

    With a timeout of 0 all of them are late, as in Apache Kafka.
    """
    late = set(names)
    if timeout_ms <= 0:
        return late

    def are_all_shown() -> bool:
        late.difference_update([name for name in late if is_shown(name)])
        return not late

    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await cache.wait_until(are_all_shown)
    except TimeoutError:
        return late
    return set()


def timed_out(topic: str, what: str) -> ApiError:
    """REQUEST_TIMED_OUT for a topic whose change was not finished in time, but continues."""
    return ApiError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"Topic '{topic}' is being {what}, but this was not finished within the timeout.",
    )


def not_controller() -> ApiError:
    """The error for an admin request that another broker must serve."""
    return ApiError(ErrorCode.NOT_CONTROLLER, "This broker is not the controller.")


async def repeated_among(items: Iterable[T | None], slices: Slices) -> set[T]:
    """Names or ids that occur more than once; None does not count."""
    seen: set[T] = set()
    doubles: set[T] = set()
    async for item in slices.each(items):
        if item is not None:
            (doubles if item in seen else seen).add(item)
    return doubles


def repeated(names: Iterable[T]) -> set[T]:
    """The same of a few."""
    seen: set[T] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
