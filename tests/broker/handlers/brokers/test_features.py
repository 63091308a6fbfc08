"""Features in ApiVersions: finalised levels, and features hidden from clients of version 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, UpdateFeaturesRequest
from tests.broker.handlers.one_broker import OneBroker, run_broker
from tests.support.broker_parts.allowing import allowing

if TYPE_CHECKING:
    from pathlib import Path

UPGRADE, SAFE_DOWNGRADE = 1, 2
NEWEST = {"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2}


async def told(broker: OneBroker, version: int = 4) -> Any:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    return await broker.ask(request, version)


def levels(answer: Any) -> dict[str, int]:
    return {each.name: each.max_version_level for each in answer.finalized_features}


async def update(broker: OneBroker, feature: str, level: int, kind: int, **said: Any) -> Any:
    wanted = UpdateFeaturesRequest.FeatureUpdate(
        feature=feature, max_version_level=level, upgrade_type=kind
    )
    return await broker.ask(UpdateFeaturesRequest(feature_updates=[wanted], **said), 2)


@pytest.mark.parametrize("version", [3, 4])
def test_a_standalone_broker_finalises_all_supported_features(tmp_path: Path, version: int) -> None:
    async def scenario(broker: OneBroker) -> None:
        answer = await told(broker, version)

        assert answer.finalized_features_epoch == 0
        assert levels(answer) == NEWEST

    run_broker(tmp_path, scenario)


def test_features_that_can_be_at_level_0_are_listed_from_version_4_on(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        assert (await told(broker, 3)).supported_features == []
        supported = (await told(broker, 4)).supported_features
        assert [(each.name, each.min_version, each.max_version) for each in supported] == [
            (name, 0, most) for name, most in NEWEST.items()
        ]

    run_broker(tmp_path, scenario)


def test_no_feature_is_finalised_with_zookeeper(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        answer = await told(broker)

        assert answer.finalized_features == []
        assert len(answer.supported_features) == len(NEWEST)

    run_broker(tmp_path, scenario, zookeeper_connect="elsewhere:2181")


def test_a_level_is_lowered_and_raised_again(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        lowered = await update(broker, "transaction.version", 1, SAFE_DOWNGRADE)

        assert (lowered.error_code, lowered.error_message, lowered.results) == (0, None, [])
        answer = await told(broker)
        assert levels(answer) == NEWEST | {"transaction.version": 1}
        assert answer.finalized_features_epoch == 1

        assert not (await update(broker, "transaction.version", 0, SAFE_DOWNGRADE)).error_code
        assert "transaction.version" not in levels(await told(broker))
        assert not (await update(broker, "transaction.version", 2, UPGRADE)).error_code
        assert levels(await told(broker)) == NEWEST

    run_broker(tmp_path, scenario)


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        dry = await update(broker, "group.version", 0, SAFE_DOWNGRADE, validate_only=True)
        assert not dry.error_code

        answer = await told(broker)
        assert (levels(answer), answer.finalized_features_epoch) == (NEWEST, 0)

    run_broker(tmp_path, scenario)


def test_refusal_names_the_feature_and_changes_none(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        wanted = [
            UpdateFeaturesRequest.FeatureUpdate(
                feature=name, max_version_level=level, upgrade_type=SAFE_DOWNGRADE
            )
            for name, level in (("group.version", 0), ("metadata.version", 7))
        ]
        refused = await broker.ask(UpdateFeaturesRequest(feature_updates=wanted), 2)

        assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert refused.error_message == (
            "The update failed for all features since the following feature had an error: "
            "Invalid update version 7 for feature metadata.version. "
            "Local controller 0 does not support this feature."
        )
        assert levels(await told(broker)) == NEWEST

    run_broker(tmp_path, scenario)


def test_version_1_answers_for_each_feature_and_version_0_may_allow_a_downgrade(
    tmp_path: Path,
) -> None:
    async def scenario(broker: OneBroker) -> None:
        wanted = UpdateFeaturesRequest.FeatureUpdate(
            feature="group.version", max_version_level=0, allow_downgrade=True
        )
        answer = await broker.ask(UpdateFeaturesRequest(feature_updates=[wanted]), 0)

        assert [(one.feature, one.error_code) for one in answer.results] == [("group.version", 0)]
        assert "group.version" not in levels(await told(broker))

    run_broker(tmp_path, scenario)


def test_update_needs_alter_on_the_cluster(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        broker.services.authorizer = allowing()
        refused = await update(broker, "group.version", 0, SAFE_DOWNGRADE)
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

        broker.services.authorizer = allowing(
            (ResourceType.CLUSTER, "kafka-cluster", AclOperation.ALTER)
        )
        assert not (await update(broker, "group.version", 0, SAFE_DOWNGRADE)).error_code

    run_broker(tmp_path, scenario)


def test_only_the_controller_updates(tmp_path: Path) -> None:
    async def scenario(broker: OneBroker) -> None:
        await broker.controller.retire()

        refused = await update(broker, "group.version", 0, SAFE_DOWNGRADE)
        assert refused.error_code == ErrorCode.NOT_CONTROLLER

    run_broker(tmp_path, scenario)
