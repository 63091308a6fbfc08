"""Seeds of drawn tests: how many of them are run.

A plugin of pytest, for its option `--one-seed`. A test takes its seed as the parameter `seed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Hashable

    from _pytest.mark import ParameterSet

SEED = "seed"


def quick_and_slow(seeds: range, quick: int) -> list[int | ParameterSet]:
    """Parameters for all of `seeds`, of which the first `quick` are not slow."""
    assert quick <= len(seeds)
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in seeds[quick:]]
    return [*seeds[:quick], *slow]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option."""
    told = "of a test that takes seeds, and of each of its other parameters, run the first selected"
    parser.addoption("--one-seed", action="store_true", help=told)


@pytest.hookimpl(trylast=True)  # after what is deselected by its marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all seeds of a test but its first, in any order of the tests."""
    if not config.getoption("one_seed"):
        return
    first: dict[Hashable, int] = {}
    for item in items:
        if (found := _seed_of(item)) is not None:
            test, index = found
            first[test] = min(index, first.get(test, index))
    left_out = [
        item
        for item in items
        if (found := _seed_of(item)) is not None and found[1] != first[found[0]]
    ]
    config.hook.pytest_deselected(items=left_out)
    gone = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in gone]


def _seed_of(item: pytest.Item) -> tuple[Hashable, int] | None:
    """The test with its other parameters, and the place of its seed; None without seeds."""
    callspec: Any = getattr(item, "callspec", None)
    if callspec is None or SEED not in callspec.params:
        return None
    others = tuple(
        sorted((name, repr(value)) for name, value in callspec.params.items() if name != SEED)
    )
    return (item.parent, getattr(item, "originalname", item.name), others), callspec.indices[SEED]
