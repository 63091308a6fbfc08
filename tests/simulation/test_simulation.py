"""Seeds of the simulation that every change has to survive, and defects that it has to find.

Each runs in a process of its own, whose hashes are the same in every run.
"""

from __future__ import annotations

import pytest

from tests.simulation.delay_defects import DELAY_DEFECTS
from tests.simulation.processes import check_fine, check_found, simulate, slow_seeds


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", [range(10), *slow_seeds(range(10, 25), range(25, 50))])
def test_seeds_keep_every_promise(seeds: range) -> None:
    check_fine(seeds)


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seeds", [range(3), *slow_seeds(range(3, 20), range(20, 40))])
def test_delayed_records_arrive_once_and_never_early(seeds: range) -> None:
    check_fine(seeds, "--delays")


def test_a_seed_gives_the_same_run_each_time() -> None:
    runs = [simulate("--seeds", "7").stdout.partition(" virtual")[0] for _ in range(2)]

    assert runs[0] == runs[1]
    assert "steps" in runs[0]


SEEDS = "0-300"
"""Among which each defect shows; the first that shows it ends the search."""

LIKELY = {
    "watchers": "17-18",
    "errors of answers": "8-9",
    "epochs": "14-15",
    "flush of leaders": "10-11",
    "flush of followers": "1-2",
    "fencing of writes": "15-16",
}
"""Seeds that showed those which show seldom; any change of the broker may have others show them."""

LONG = {"watchers", "fencing of controllers"}
"""Defects that are looked for longest, by `make test-all` only."""

RECORDS = r"producer-\d+|Violation"
FENCES = r"takes an old|fell from|as controller of epoch"
SHOWS = {
    "truncation": RECORDS,
    "epochs": rf"not settled|{RECORDS}",
    "acknowledgement": RECORDS,
    "flush": rf"DamagedFileError|{RECORDS}",
    "flush of leaders": RECORDS,
    "flush of followers": RECORDS,
    "fencing": FENCES,
    "fencing of writes": "as controller of epoch",
    "fencing of controllers": "controller epoch",
    "fencing of lives": "old broker epoch",
    "fencing of leaders": "leader epoch",
    "fencing of fetches": "old leader epoch of FetchRequest",
    "ownership of bytes": r"producer-\d+|was never sent",
    "watchers": "slept",
    "errors of answers": "not settled",
    "answers twice": "that nobody asked for|was next",
    "order of answers": "was next",
    "regions": "is damaged|has read|cannot be read|was next",
    "duplicates": "twice",
    "batches after a start": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "early deliveries": "was delivered too early",
    "repeated deliveries": "delivered twice",
    "lost deliveries": "did not deliver all|not settled",
    "lost cancellations": "did not deliver all|delivered what was cancelled",
    "repeated dead letters": "dead letters: ",
}
"""Report expected for each defect, so that none is found by accident."""


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(
    "defect",
    [pytest.param(defect, marks=[pytest.mark.slow] * (defect in LONG)) for defect in SHOWS],
)
def test_a_planted_defect_is_found(defect: str) -> None:
    more = ["--delays"] * (defect in DELAY_DEFECTS)
    check_found(defect, SHOWS[defect], LIKELY.get(defect, SEEDS), SEEDS, *more)
