"""Seeds of transactions that must be fine, and defects that they have to find."""

from __future__ import annotations

import pytest

from tests.simulation.processes import check_fine, check_found, slow_seeds
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
"""Report expected for each defect, so that none is found by accident."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [range(2), *slow_seeds(range(2, 12), range(12, 30))])
def test_transactions_keep_every_promise(seeds: range) -> None:
    check_fine(seeds, "--transactions")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    "defect",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SHOWS],
)
def test_a_planted_defect_of_transactions_is_found(defect: str) -> None:
    check_found(defect, SHOWS[defect], LIKELY[defect], SEEDS, "--transactions")


def test_each_planted_defect_is_looked_for() -> None:
    assert SHOWS.keys() == TRANSACTION_DEFECTS.keys()
