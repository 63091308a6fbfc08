"""This broker's copy of the finalised features, kept up to date by a watch on `/feature`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from controller.features.feature_znode import decode_levels, encode_levels
from controller.features.levels import FEATURES, NEWEST
from controller.metadata_store.store import (
    BadVersionError,
    Change,
    MetadataStore,
    NodeExistsError,
    StoreError,
)
from controller.znodes import FEATURE, MalformedZnodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from controller.features.levels import Feature

UNKNOWN_EPOCH = -1
"""The epoch before the first finalisation."""

logger = logging.getLogger(__name__)


class UnusableFeaturesError(Exception):
    """The cluster relies on a feature that this broker does not support."""


class FeatureOwner(NamedTuple):
    """Dependencies of a broker's copy of the features."""

    keep: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], object]
    """Owns the tasks that read the store after a change."""
    give_up: Callable[[str], None]
    """Stops a broker that does not support the finalised features, as Apache Kafka's stops."""


class FinalisedFeatures:
    """The level at which the cluster works, by feature."""

    def __init__(self, store: MetadataStore, owner: FeatureOwner, *, is_alone: bool) -> None:
        """`is_alone` without ZooKeeper: no broker of Apache Kafka, which promises less, can join.

        Until `start` the levels are those of a new cluster.
        """
        self._store = store
        self._owner = owner
        self._is_alone = is_alone
        self._is_watching = False
        self._read_at = -1
        """Transaction that wrote the node, as last read."""
        self.levels: Mapping[str, int] = NEWEST if is_alone else {}
        """Finalised levels above 0."""
        self.epoch = UNKNOWN_EPOCH
        """Grows with each change: the version of the node."""

    def level(self, feature: Feature) -> int:
        """The level that the cluster works at."""
        return self.levels.get(feature.name, 0)

    async def start(self) -> None:
        """Read the levels and watch for changes; a broker that is alone makes the node.

        Raises StoreError, and UnusableFeaturesError if this broker does not support them.
        """
        if self._is_alone:
            await self._finalise_newest()
        await self.refresh()

    async def refresh(self) -> None:
        """Read the levels again. Raises StoreError and UnusableFeaturesError."""
        node = await self._store.exists(FEATURE, self._watch())
        if node is None:
            return
        try:
            levels = decode_levels(node.data)
        except MalformedZnodeError as error:
            raise UnusableFeaturesError(f"features: {error}") from None
        if node.mzxid <= self._read_at:
            return  # a later read was faster
        for name, level in levels.items():
            _require_support(name, level)
        if levels != self.levels:
            logger.info("finalised features: %s (epoch %d)", _shown(levels), node.version)
        self.levels, self.epoch, self._read_at = levels, node.version, node.mzxid

    async def _finalise_newest(self) -> None:
        """Finalise all features of a store that is new.

        An earlier version of this broker wrote the node and never read it: it promised all that it
        could. So does this one, unless the node has been changed.
        """
        node = await self._store.exists(FEATURE)
        try:
            if node is None:
                await self._store.create(FEATURE, encode_levels(NEWEST))
            elif node.version == 0 and node.data == encode_levels({}):
                await self._store.set(FEATURE, encode_levels(NEWEST), node.version)
        except (NodeExistsError, BadVersionError):
            return

    def _watch(self) -> Callable[[Change], None] | None:
        if self._is_watching:
            return None
        self._is_watching = True  # before the answer, which a change may overtake

        def notice(_: Change) -> None:
            self._is_watching = False
            self._owner.keep("finalised features", self._refresh_patiently)

        return notice

    async def _refresh_patiently(self) -> None:
        while True:
            try:
                await self.refresh()
            except StoreError as error:
                self._is_watching = False
                logger.warning("finalised features deferred, metadata store unavailable: %s", error)
                await self._store.wait_until_reachable()
            except UnusableFeaturesError as error:
                self._owner.give_up(str(error))
                return
            else:
                return


def _require_support(name: str, level: int) -> None:
    known = next((one for one in FEATURES if one.name == name), None)
    if known is None or level > known.last:
        most = "does not know it" if known is None else f"supports {known.last} at most"
        raise UnusableFeaturesError(
            f"features: {name} is finalised at level {level}; this broker {most}"
        )


def _shown(levels: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level}" for name, level in sorted(levels.items())) or "none"
