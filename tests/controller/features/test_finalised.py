"""A broker's copy of the finalised features: where it begins, and how it follows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from controller.features.feature_znode import decode_levels, encode_levels
from controller.features.finalised import (
    UNKNOWN_EPOCH,
    FeatureOwner,
    FinalisedFeatures,
    UnusableFeaturesError,
)
from controller.features.levels import GROUP_VERSION, NEWEST
from controller.znodes import FEATURE, MalformedZnodeError
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

EMPTY = b'{"features":{},"version":2,"status":1}'
LOWERED = NEWEST | {"group.version": 0}


class Owner:
    """Runs what a broker would own."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.reasons: list[str] = []

    def keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.tasks.add(asyncio.get_running_loop().create_task(work(), name=name))

    def features(self, ensemble: MemoryEnsemble, *, is_alone: bool) -> FinalisedFeatures:
        owner = FeatureOwner(self.keep, self.reasons.append)
        return FinalisedFeatures(ensemble.connect(), owner, is_alone=is_alone)


def test_a_new_standalone_broker_finalises_all_and_keeps_lowered_levels() -> None:
    async def scenario() -> None:
        ensemble, owner = MemoryEnsemble(), Owner()
        features = owner.features(ensemble, is_alone=True)
        await features.start()
        assert (dict(features.levels), features.epoch) == (NEWEST, 0)

        await ensemble.connect().set(FEATURE, encode_levels(LOWERED))
        again = owner.features(ensemble, is_alone=True)
        await again.start()
        assert (again.level(GROUP_VERSION), again.epoch) == (0, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("times_written", [0, 1])
def test_an_unwritten_feature_znode_of_an_earlier_version_finalises_all(
    times_written: int,
) -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.connect()
        await store.create(FEATURE, EMPTY)
        for _ in range(times_written):  # somebody lowered all levels
            await store.set(FEATURE, EMPTY)

        features = Owner().features(ensemble, is_alone=True)
        await features.start()
        assert features.levels == ({} if times_written else NEWEST)

    asyncio.run(scenario())


def test_with_zookeeper_no_feature_is_finalised_before_an_update() -> None:
    async def scenario() -> None:
        ensemble, owner = MemoryEnsemble(), Owner()
        features = owner.features(ensemble, is_alone=False)
        await features.start()
        assert (features.levels, features.epoch) == ({}, UNKNOWN_EPOCH)

        store = ensemble.connect()
        await store.create(FEATURE, EMPTY)
        await turns()
        assert (features.levels, features.epoch) == ({}, 0)
        for level in (1, 0, 1):
            await store.set(FEATURE, encode_levels({"group.version": level}))
            await turns()
            assert features.level(GROUP_VERSION) == level
        assert features.epoch == 3

        await store.delete(FEATURE)
        await store.create(FEATURE, EMPTY)
        await turns()
        assert (features.levels, features.epoch) == ({}, 0)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "unusable",
    [
        encode_levels({"group.version": 2}),
        encode_levels({"tomorrow.version": 1}),
        b"{",
        b'{"features":[],"version":2,"status":1}',
    ],
)
def test_a_broker_ends_on_finalised_features_it_does_not_support(unusable: bytes) -> None:
    async def scenario() -> None:
        ensemble, owner = MemoryEnsemble(), Owner()
        features = owner.features(ensemble, is_alone=False)
        await features.start()
        store = ensemble.connect()
        await store.create(FEATURE, unusable)
        await turns()
        assert len(owner.reasons) == 1

        with pytest.raises(UnusableFeaturesError):
            await owner.features(ensemble, is_alone=False).start()

    asyncio.run(scenario())


def test_bytes_are_apaches() -> None:
    assert encode_levels({}) == EMPTY
    data = b'{"features":{"f":{"max_version_level":3}},"version":2,"status":1}'
    assert encode_levels({"f": 3, "g": 0}) == data
    assert decode_levels(data) == {"f": 3}
    assert decode_levels(b'{"version":1,"status":0,"features":{"f":{"max_version_level":3}}}') == {}
    with pytest.raises(MalformedZnodeError):
        decode_levels(None)
