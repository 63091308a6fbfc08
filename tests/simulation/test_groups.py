"""Seeds of groups of all kinds that must be fine, and defects that they have to find."""

from __future__ import annotations

import pytest

from tests.simulation.group_defects import GROUP_DEFECTS
from tests.simulation.processes import check_fine, check_found, slow_seeds

SEEDS = "0-300"
"""Among which each defect shows; the first that shows it ends the search."""

LIKELY = {
    "fencing of commits": "71-72",
    "owners": "0-1",
    "answers of coordinators": "0-1",
    "acknowledgements of shares": "6-7",
    "removals": "2-3",
    "delivery counts": "3-4",
    "state of shares": "0-1",
    "locks": "13-14",
    "releases": "3-4",
    "fencing of share leaders": "72-73",
}
"""Seeds that showed those; any change of the broker may have others show them."""

QUICK = ("answers of coordinators",)

OWNERS = "was accepted, though|both own"
SHOWS = {
    "fencing of commits": OWNERS,
    "owners": OWNERS,
    "answers of coordinators": OWNERS,
    "removals": "not settled",
    "acknowledgements of shares": "it comes again",
    "delivery counts": "though the count was|its count fell",
    "state of shares": "it comes again|its count fell",
    "locks": "while .* has it",
    "releases": "never got|not settled",
    "fencing of share leaders": "comes again|count|has it",
}
"""Report expected for each defect, so that none is found by accident."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [range(2), *slow_seeds(range(2, 12), range(12, 30))])
def test_groups_keep_every_promise(seeds: range) -> None:
    check_fine(seeds, "--groups")


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    "defect",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SHOWS],
)
def test_a_planted_defect_of_groups_is_found(defect: str) -> None:
    check_found(defect, SHOWS[defect], LIKELY.get(defect, SEEDS), SEEDS, "--groups")


def test_each_planted_defect_is_looked_for() -> None:
    assert SHOWS.keys() == GROUP_DEFECTS.keys()
