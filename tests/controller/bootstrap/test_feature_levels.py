"""Levels of features in a new cluster."""

from __future__ import annotations

import pytest

from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.feature_levels import FEATURES, parse_level, starting_levels
from controller.bootstrap.metadata_versions import VERSIONS, of_level


def test_newest_stable_release_turns_everything_on() -> None:
    assert starting_levels(None, (), is_dynamic=True) == {
        "metadata.version": 33,
        "kraft.version": 1,
        "transaction.version": 2,
        "group.version": 1,
        "eligible.leader.replicas.version": 1,
        "share.version": 2,
        "streams.version": 1,
    }


def test_defaults_of_every_release_meet_their_dependencies() -> None:
    for version in VERSIONS:
        levels = starting_levels(version, (), is_dynamic=False, unstable=True)
        assert all(levels[one.name] <= len(one.since) for one in FEATURES)


def test_stated_level_overrides_the_default() -> None:
    levels = starting_levels(of_level(30), [("share.version", 0)], is_dynamic=False)
    assert (levels["share.version"], levels["streams.version"]) == (0, 1)


@pytest.mark.parametrize(
    ("release", "stated", "is_dynamic", "reason"),
    [
        (21, ("eligible.leader.replicas.version", 1), False, r"depends on metadata.version 23"),
        (None, ("share.version", 3), False, r"share.version has no level 3"),
        (None, ("nosuch.version", 1), False, r"Unsupported feature: nosuch.version; supported"),
        (30, ("metadata.version", 30), False, r"by a release and by a level"),
        (None, ("metadata.version", 34), False, r"4\.5-IV0 is not stable"),
        (None, ("kraft.version", 0), True, r"leave out --feature kraft.version"),
        (None, ("kraft.version", 1), False, r"remove controller.quorum.voters"),
    ],
)
def test_levels_that_do_not_fit_are_refused(
    release: int | None, stated: tuple[str, int], is_dynamic: bool, reason: str
) -> None:
    version = None if release is None else of_level(release)
    with pytest.raises(BootstrapError, match=reason):
        starting_levels(version, [stated], is_dynamic=is_dynamic)


def test_level_is_written_after_the_name() -> None:
    assert parse_level(" group.version = +1 ") == ("group.version", 1)
    for text in ("group.version", "group.version=", "group.version=x", "group.version=32768"):
        with pytest.raises(BootstrapError, match=r"is not a "):
            parse_level(text)
