"""Slices for tests: the shortest there are, so that others come in between wherever they may."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from broker.runtime.slices import Turns

if TYPE_CHECKING:
    from broker.runtime.slices import Slices


def one_step_at_a_time() -> Slices:
    """Slices that end after each step, as if it had taken a second."""
    seconds = itertools.count()
    return Turns(lambda: float(next(seconds))).slices()
