"""UpdateFeatures: levels that the whole cluster works at from now on (KIP-584).

Versions 0 to 2, served by the controller: v1 says whether a level is meant to be lowered, and can
be a dry run; v2 answers for all features together. Either all levels are finalised or none. It asks
for ALTER on the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metadata.metadata_watch import not_controller
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.background_answer import answer_later
from controller.features.finalised import UnusableFeaturesError
from controller.features.updates import FeatureUpdate, UpgradeType
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.api_versions import UpdateFeaturesRequest, UpdateFeaturesResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred

FAILED_FOR_ALL = "The update failed for all features since the following feature had an error: "
LAST_VERSION_WITH_RESULTS = 1


@handles(UpdateFeaturesRequest, versions="0-2")
def update_features(
    context: Context, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse | Deferred[UpdateFeaturesResponse]:
    """Finalise levels; answered when this broker works at them."""

    def refuse(error: ApiError) -> UpdateFeaturesResponse:
        message = error.message or error.code.meaning
        if error.code is ErrorCode.INVALID_UPDATE_VERSION:
            message = FAILED_FOR_ALL + message
        return UpdateFeaturesResponse(error_code=error.code, error_message=message)

    if not is_allowed_on_cluster(context, AclOperation.ALTER):
        return refuse(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if not context.broker.controller.is_active:
        return refuse(not_controller())
    return answer_later(context, _update(context, request), refuse, "update of features")


async def _update(context: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    broker = context.broker
    updates = {  # of a feature that is named twice, the last counts
        one.feature: FeatureUpdate(one.feature, one.max_version_level, _upgrade_type(one))
        async for one in broker.slices().each(request.feature_updates)
    }
    await broker.controller.commands.update_features(
        list(updates.values()), validate_only=request.validate_only
    )
    try:
        await broker.features.refresh()
    except UnusableFeaturesError as error:
        raise ApiError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from error
    results = [
        UpdateFeaturesResponse.Result(feature=name, error_code=ErrorCode.NONE, error_message=None)
        for name in updates
    ]
    return UpdateFeaturesResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        results=results if context.api_version <= LAST_VERSION_WITH_RESULTS else [],
    )


def _upgrade_type(update: UpdateFeaturesRequest.FeatureUpdate) -> int:
    """In v0 there is only a switch for it."""
    return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else update.upgrade_type
