"""Generators that stand for work in steps, run to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

R = TypeVar("R")


def finished(steps: Generator[None, None, R]) -> R:
    """Run the steps to their end at once; returns their result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        outcome: R = end.value
        return outcome
