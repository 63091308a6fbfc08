"""Seeds of transactions that must be fine, and defects that they have to find."""

from __future__ import annotations

import re

import pytest

from tests.simulation.processes import is_bad, simulate
from tests.simulation.transaction_defects import TRANSACTION_DEFECTS

SEEDS = "0-100"
"""Among which each defect shows; the first that shows it ends the search."""

LIKELY = {
    "decided transactions": "0-1",
    "pending positions": "2-3",
    "positions after a move": "2-3",
    "decisions": "3-4",
}
"""Seeds that showed those; any change of the broker may have others show them."""

QUICK = ("positions after a move", "decisions")

SHOWS = {
    "decided transactions": "not settled",
    "pending positions": "position",
    "positions after a move": "position",
    "decisions": "was committed, and is in 0",
}
"""What is told of each, so that none is found by accident."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 30), marks=pytest.mark.slow)])
def test_transactions_keep_every_promise(seeds: range) -> None:
    done = simulate("--transactions", "--seeds", f"{seeds.start}-{seeds.stop}", "--trace")

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert done.stdout.count(": fine") == len(seeds)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "defect",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SHOWS],
)
def test_a_planted_defect_of_transactions_is_found(defect: str) -> None:
    done = simulate("--transactions", "--seeds", LIKELY[defect], "--defect", defect)
    if done.returncode == 0:
        done = simulate("--transactions", "--seeds", SEEDS, "--defect", defect)

    (found,) = (line for line in done.stdout.splitlines() if is_bad(line))
    assert re.search(SHOWS[defect], found), found
    assert done.returncode == 1


def test_each_planted_defect_is_looked_for() -> None:
    assert SHOWS.keys() == TRANSACTION_DEFECTS.keys()
