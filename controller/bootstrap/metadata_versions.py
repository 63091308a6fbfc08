"""Levels of `metadata.version` and the releases that they came with.

A release is written `4.3-IV0`, after the level, or by its number alone: `4.3` and `4.3.1` are the
newest level of 4.3. Source: `MetadataVersion` of Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from controller.bootstrap.errors import BootstrapError
from controller.image.features import METADATA_VERSION, OLDEST_METADATA_VERSION

_RELEASES: Final = {
    "3.3": ("IV3",),
    "3.4": ("IV0",),
    "3.5": ("IV0", "IV1", "IV2"),
    "3.6": ("IV0", "IV1", "IV2"),
    "3.7": ("IV0", "IV1", "IV2", "IV3", "IV4"),
    "3.8": ("IV0",),
    "3.9": ("IV0",),
    "4.0": ("IV0", "IV1", "IV2", "IV3"),
    "4.1": ("IV0", "IV1"),
    "4.2": ("IV0", "IV1"),
    "4.3": ("IV0",),
    "4.4": ("IV0", "IV1", "IV2"),
    "4.5": ("IV0",),
}
_NEWEST_STABLE_NAME: Final = "4.4-IV2"
_RELEASE_PARTS: Final = 2


class MetadataVersion(NamedTuple):
    """One level."""

    level: int
    name: str
    """Such as `4.4-IV2`."""

    def __str__(self) -> str:
        return f"{METADATA_VERSION}={self.level} ({self.name})"


def _versions() -> tuple[MetadataVersion, ...]:
    names = (f"{release}-{part}" for release, parts in _RELEASES.items() for part in parts)
    return tuple(MetadataVersion(*one) for one in enumerate(names, OLDEST_METADATA_VERSION))


VERSIONS: Final = _versions()
"""All levels, oldest first."""
_BY_NAME: Final = {one.name: one for one in VERSIONS}

OLDEST: Final = VERSIONS[0]
NEWEST_STABLE: Final = _BY_NAME[_NEWEST_STABLE_NAME]
NEWEST: Final = VERSIONS[-1]
"""Under development."""

_BY_NAME.update(
    {one.name.partition("-")[0]: one for one in VERSIONS if one.level <= NEWEST_STABLE.level}
)


def of_release(text: str, *, unstable: bool) -> MetadataVersion:
    """The level that a release stands for. Raises BootstrapError.

    `unstable` admits levels under development.
    """
    parts = text.rstrip(".").split(".")
    name = text if len(parts) <= _RELEASE_PARTS else ".".join(parts[:_RELEASE_PARTS])
    found = _BY_NAME.get(name)
    if found is None or not (unstable or found.level <= NEWEST_STABLE.level):
        known = VERSIONS if unstable else VERSIONS[: VERSIONS.index(NEWEST_STABLE) + 1]
        names = ", ".join(one.name for one in known)
        raise BootstrapError(f"Unknown {METADATA_VERSION} '{text}'; known are: {names}")
    return found


def of_level(level: int) -> MetadataVersion:
    """The version of a level, stable or not. Raises BootstrapError."""
    if not OLDEST.level <= level <= NEWEST.level:
        known = f"{OLDEST.level} to {NEWEST.level}"
        raise BootstrapError(f"Unknown {METADATA_VERSION} {level}; levels are {known}")
    return VERSIONS[level - OLDEST.level]
