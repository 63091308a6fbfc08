"""What requests of the newer kinds of group have in common: their gate, their descriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from controller.features.levels import Feature

T = TypeVar("T")


def is_served(context: Context, feature: Feature, protocol: str) -> bool:
    """Whether the feature is finalised and the protocol offered.

    The latter by `group.coordinator.rebalance.protocols`.
    """
    broker = context.broker
    is_finalised = broker.features.level(feature) > 0
    return is_finalised and protocol in broker.config.group_coordinator_rebalance_protocols


async def finished(context: Context, steps: Steps[T]) -> T:
    """What the steps return, once they are done; others are served between them."""
    slices = context.broker.slices()
    while True:
        await slices.give_way()
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
