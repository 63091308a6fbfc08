"""Seeds of drawn tests: a few are run always, the others with the slow tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def quick_and_slow(seeds: range, quick: int) -> list[int | ParameterSet]:
    """Parameters for all of `seeds`, of which the first `quick` are not slow."""
    assert quick <= len(seeds)
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[quick:]]
    return [*seeds[:quick], *slow]
