"""The levels of features that a new cluster begins with (KIP-584, KIP-1022).

The release sets the default of each feature; what is stated for single features overrides it, as
long as the levels that a feature depends on are there.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.metadata_versions import NEWEST, NEWEST_STABLE, of_level
from controller.image.features import KRAFT_VERSION, METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from controller.bootstrap.metadata_versions import MetadataVersion

_LEVEL: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SHORT: Final = range(-(1 << 15), 1 << 15)


class Feature(NamedTuple):
    """One feature besides `metadata.version`."""

    name: str
    since: tuple[int, ...]
    """`metadata.version` from which each level is the default, from level 1 on; 0 is without it."""
    requires: Mapping[int, Mapping[str, int]] = MappingProxyType({})
    """Levels of other features that a level depends on."""

    def default_at(self, metadata_version: int) -> int:
        """The level that a release brings along."""
        return sum(since <= metadata_version for since in self.since)

    def check_level(self, level: int) -> None:
        """Raise BootstrapError for a level that there is not."""
        if not 0 <= level <= len(self.since):
            raise BootstrapError(f"{self.name} has no level {level}")

    def check(self, level: int, levels: Mapping[str, int]) -> None:
        """Raise BootstrapError for an unknown level, or one whose dependencies are not met."""
        self.check_level(level)
        for name, least in self.requires.get(level, {}).items():
            if levels[name] < least:
                raise BootstrapError(f"{self.name}={level} depends on {name} {least} or later")


FEATURES: Final = (
    Feature(KRAFT_VERSION, (21,)),
    Feature("transaction.version", (24, 24)),
    Feature("group.version", (22,)),
    Feature("eligible.leader.replicas.version", (26,), {1: {METADATA_VERSION: 23}}),
    Feature("share.version", (28, 31)),
    Feature("streams.version", (29,)),
)
"""Features of Apache Kafka 4.4, in the order in which its tool lists them."""
BY_NAME: Final = {one.name: one for one in FEATURES}


def parse_level(text: str) -> tuple[str, int]:
    """Name and level of `name=level`. Raises BootstrapError."""
    name, separator, level = text.partition("=")
    if not separator:
        raise BootstrapError(f"'{text}' is not a feature and its level, as group.version=1")
    level = level.strip()
    if not _LEVEL.fullmatch(level) or int(level) not in _SHORT:
        raise BootstrapError(f"'{level}' is not a level for {name.strip()}")
    return name.strip(), int(level)


def starting_levels(
    release: MetadataVersion | None,
    stated: Iterable[tuple[str, int]],
    *,
    is_dynamic: bool,
    unstable: bool = False,
) -> dict[str, int]:
    """The level of every feature, by name. Raises BootstrapError.

    `is_dynamic` says that voters can change (KIP-853), which `kraft.version` 1 stands for;
    `unstable` admits a `metadata.version` under development.
    """
    levels = dict(stated)
    _refuse_unknown(levels)
    version = _metadata_version(release, levels.get(METADATA_VERSION), unstable=unstable)
    levels[METADATA_VERSION] = version.level
    levels[KRAFT_VERSION] = _kraft_version(levels.get(KRAFT_VERSION), is_dynamic=is_dynamic)
    for feature in FEATURES:
        levels.setdefault(feature.name, feature.default_at(version.level))
    for feature in FEATURES:
        feature.check(levels[feature.name], levels)
    return levels


def _refuse_unknown(levels: Iterable[str]) -> None:
    for name in levels:
        if name != METADATA_VERSION and name not in BY_NAME:
            known = ", ".join(sorted(BY_NAME))
            raise BootstrapError(f"Unsupported feature: {name}; supported are: {known}")


def _metadata_version(
    release: MetadataVersion | None, level: int | None, *, unstable: bool
) -> MetadataVersion:
    if level is None:
        return release or (NEWEST if unstable else NEWEST_STABLE)
    if release is not None:
        raise BootstrapError(f"{METADATA_VERSION} is given by a release and by a level: drop one")
    version = of_level(level)
    if level > NEWEST_STABLE.level and not unstable:
        raise BootstrapError(f"{METADATA_VERSION} {version.name} is not stable yet")
    return version


def _kraft_version(stated: int | None, *, is_dynamic: bool) -> int:
    if stated == 0 and is_dynamic:
        raise BootstrapError(
            f"{KRAFT_VERSION} 0 has no voters that change: set controller.quorum.voters, or leave "
            f"out --feature {KRAFT_VERSION}"
        )
    if stated and not is_dynamic:
        raise BootstrapError(
            f"{KRAFT_VERSION} {stated} needs voters that can change: remove "
            "controller.quorum.voters and use --standalone, --initial-controllers or "
            "--no-initial-controllers"
        )
    return stated if stated is not None else int(is_dynamic)
