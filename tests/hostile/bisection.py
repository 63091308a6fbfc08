"""Looks for the one frame that does harm, by halving a range that does."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tests.hostile.run import Run

if TYPE_CHECKING:
    from tests.hostile.run import Settings


def narrowed(settings: Settings) -> range | None:
    """The smallest range found that still does harm to a broker of its own; None if none does.

    Looks at halves, then at the middle half: harm that takes two frames far apart stays as it is.
    """
    trials = 0

    def does_harm(numbers: range) -> bool:
        nonlocal trials
        trials += 1
        directory = settings.directory / f"trial-{trials}"
        run = Run(dataclasses.replace(settings, frames=numbers, directory=directory))
        found = bool(run.go().findings.counts)
        print(f"{numbers.start}-{numbers.stop}: {'harm' if found else 'none'}", flush=True)
        return found

    numbers = settings.frames
    if not does_harm(numbers):
        return None
    while len(numbers) > 1:
        half, quarter = len(numbers) // 2, len(numbers) // 4
        parts = [numbers[:half], numbers[half:]]
        if quarter:
            parts.append(numbers[quarter:-quarter])
        smaller = next((part for part in parts if does_harm(part)), None)
        if smaller is None:
            break
        numbers = smaller
    return numbers
