"""Releases and levels of `metadata.version`."""

from __future__ import annotations

import pytest

from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.metadata_versions import (
    NEWEST,
    NEWEST_STABLE,
    OLDEST,
    of_level,
    of_release,
)


@pytest.mark.parametrize(
    ("release", "level"),
    [("3.3", 7), ("3.5", 11), ("3.7-IV2", 17), ("4.0", 25), ("4.3.1", 30), ("4.4", 33)],
)
def test_release_stands_for_its_newest_level(release: str, level: int) -> None:
    assert of_release(release, unstable=False).level == level


@pytest.mark.parametrize("release", ["3.3-IV2", "3.9-IV1", "4.5-IV0", "4.5", "4", "", "4.4."])
def test_unknown_and_unstable_releases_are_refused_with_those_there_are(release: str) -> None:
    with pytest.raises(BootstrapError, match=r"'; known are: 3\.3-IV3, .*, 4\.4-IV2$"):
        of_release(release, unstable=False)


def test_level_under_development_is_named_in_full() -> None:
    assert of_release("4.5-IV0", unstable=True) == NEWEST
    with pytest.raises(BootstrapError):
        of_release("4.5", unstable=True)


def test_levels_have_the_names_of_apache() -> None:
    assert (OLDEST.level, OLDEST.name) == (7, "3.3-IV3")
    assert str(NEWEST_STABLE) == "metadata.version=33 (4.4-IV2)"
    assert of_level(24).name == "4.0-IV2"
    for level in (6, 35):
        with pytest.raises(BootstrapError, match="7 to 34"):
            of_level(level)
