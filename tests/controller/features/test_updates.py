"""Feature levels that can be finalised, and the brokers that have to support them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controller.features.feature_znode import decode_levels
from controller.features.levels import FEATURES
from controller.features.updates import Cluster, FeatureUpdate, UpgradeType, check_update
from controller.znodes import BROKER_IDS, FEATURE, BrokerRegistration
from protocol.errors import ApiError, ErrorCode
from tests.controller.harness import run_cluster, turns

if TYPE_CHECKING:
    from tests.controller.harness import Cluster as Brokers

OURS = BrokerRegistration((), features=FEATURES)
APACHE_3 = BrokerRegistration(())
UP, DOWN, UNSAFE = UpgradeType


def refusal(update: FeatureUpdate, cluster: Cluster) -> str:
    with pytest.raises(ApiError) as refused:
        check_update(update, cluster)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION
    prefix = f"Invalid update version {update.level} for feature {update.feature}. "
    assert str(refused.value.message).startswith(prefix)
    return str(refused.value.message).removeprefix(prefix)


@pytest.mark.parametrize(
    ("feature", "level", "kind", "reason"),
    [
        ("group.version", 1, 0, "The controller does not support the given upgrade type."),
        ("group.version", -1, DOWN, "A feature version cannot be less than 0."),
        ("group.version", 2, UP, "Local controller 1 only supports versions 0-1"),
        ("kraft.version", 1, UP, "Local controller 1 does not support this feature."),
        ("kraft.version", 0, DOWN, "Feature kraft.version not found."),
        ("transaction.version", 2, DOWN, "Can't downgrade to a newer version."),
        (
            "transaction.version",
            0,
            UP,
            (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            ),
        ),
    ],
)
def test_refusals_in_apaches_words(feature: str, level: int, kind: int, reason: str) -> None:
    cluster = Cluster(1, {"transaction.version": 1}, {1: OURS})
    assert refusal(FeatureUpdate(feature, level, kind), cluster) == reason


@pytest.mark.parametrize("kind", [UP, DOWN, UNSAFE])
def test_the_same_level_again_is_fine(kind: UpgradeType) -> None:
    check_update(FeatureUpdate("group.version", 1, kind), Cluster(1, {"group.version": 1}, {}))


def test_a_registered_broker_of_apache_3_keeps_levels_at_0() -> None:
    cluster = Cluster(1, {}, {1: OURS, 2: APACHE_3})
    reason = refusal(FeatureUpdate("group.version", 1, UP), cluster)
    assert reason == "Broker 2 does not support this feature."
    check_update(FeatureUpdate("group.version", 0, DOWN), cluster)


def test_levels_are_stored_for_all_brokers_or_refused() -> None:
    async def scenario(brokers: Brokers) -> None:
        commands = brokers.members[1].controller.commands
        update = FeatureUpdate("group.version", 1, UP)
        apache = await brokers.add(9, features=())
        with pytest.raises(ApiError, match="Broker 9 does not support"):
            await commands.update_features([update], validate_only=False)
        await apache.store.close()
        await turns()

        await commands.update_features([update], validate_only=False)

        node = await brokers.store.get(FEATURE)
        assert node.data == (
            b'{"features":{"group.version":{"max_version_level":1}},"version":2,"status":1}'
        )

    run_cluster(scenario, 1, 2)


def test_a_broker_without_finalised_features_is_not_live() -> None:
    async def scenario(brokers: Brokers) -> None:
        controller = brokers.members[1].controller
        update = FeatureUpdate("group.version", 1, UP)
        await controller.commands.update_features([update], validate_only=False)

        await brokers.add(9, features=())
        assert "9" in await brokers.store.children(BROKER_IDS)
        assert controller.context is not None
        assert controller.context.live_brokers.keys() == {1, 2}

        lowered = FeatureUpdate("group.version", 0, DOWN)
        await controller.commands.update_features([lowered], validate_only=False)
        await turns()
        assert controller.context.live_brokers.keys() == {1, 2, 9}

    run_cluster(scenario, 1, 2)


def test_several_levels_are_stored_together_or_not_at_all() -> None:
    async def scenario(brokers: Brokers) -> None:
        commands = brokers.members[1].controller.commands
        wanted = [FeatureUpdate("group.version", 1, UP), FeatureUpdate("share.version", 9, UP)]
        with pytest.raises(ApiError):
            await commands.update_features(wanted, validate_only=False)

        assert decode_levels((await brokers.store.get(FEATURE)).data) == {}

    run_cluster(scenario, 1)
