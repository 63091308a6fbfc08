"""`version-mapping` and `feature-dependencies`: what the tables of features say, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.bootstrap.errors import BootstrapError
from controller.bootstrap.feature_levels import BY_NAME, FEATURES, parse_level
from controller.bootstrap.metadata_versions import of_level, of_release
from controller.image.features import METADATA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def version_mapping(release: str) -> Iterator[str]:
    """The level that a release sets for each feature. Raises BootstrapError."""
    version = of_release(release, unstable=True)
    yield f"{METADATA_VERSION}={version.level} ({release})"
    for feature in FEATURES:
        yield f"{feature.name}={feature.default_at(version.level)}"


def feature_dependencies(features: Iterable[str]) -> Iterator[str]:
    """The levels that levels of features depend on. Raises BootstrapError."""
    for text in features:
        name, level = parse_level(text)
        if name == METADATA_VERSION:
            yield f"{of_level(level)} has no dependencies."
            continue
        feature = BY_NAME.get(name)
        if feature is None:
            raise BootstrapError(f"Unknown feature: {name}")
        feature.check_level(level)
        required = feature.requires.get(level, {})
        yield f"{name}={level} {'requires:' if required else 'has no dependencies.'}"
        for other, least in required.items():
            shown = of_level(least) if other == METADATA_VERSION else f"{other}={least}"
            yield f"    {shown}"
