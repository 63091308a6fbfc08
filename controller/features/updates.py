"""UpdateFeatures: checks of a new level, and its finalisation.

Rules, codes and words are those of Apache Kafka 4.3 (`FeatureControlManager`). The active
controller is checked in place of the controllers of a quorum; all registered brokers have to
support the level, and those of Apache Kafka with ZooKeeper support none but 0.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from controller.features.feature_znode import decode_levels, encode_levels
from controller.features.levels import FEATURES
from controller.metadata_store.store import BadVersionError, SetData
from controller.znodes import (
    BROKER_IDS,
    FEATURE,
    BrokerRegistration,
    MalformedZnodeError,
    broker_path,
    decode_broker,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.active_controller import ActiveController
    from controller.metadata_store.store import MetadataStore

logger = logging.getLogger(__name__)


class UpgradeType(IntEnum):
    """Kind of a level's change, as requested by the client."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A level that a client wants for a feature."""

    feature: str
    level: int
    upgrade_type: int


class Cluster(NamedTuple):
    """State of the cluster that decides about an update."""

    controller_id: int
    levels: Mapping[str, int]
    """The finalised ones."""
    brokers: Mapping[int, BrokerRegistration]
    """All that are registered."""


async def update_features(
    active: ActiveController,
    store: MetadataStore,
    updates: Sequence[FeatureUpdate],
    *,
    validate_only: bool,
) -> None:
    """Finalise all levels or none. Raises ApiError, and StoreError."""
    node = await store.get(FEATURE)
    try:
        levels = decode_levels(node.data)
    except MalformedZnodeError as error:
        raise ApiError(ErrorCode.FEATURE_UPDATE_FAILED, str(error)) from error
    cluster = Cluster(active.context.broker_id, levels, await _registered(store))
    for update in updates:
        check_update(update, cluster)
    if validate_only:
        return
    data = encode_levels({**levels, **{one.feature: one.level for one in updates}})
    try:
        await active.store.write([SetData(FEATURE, data, node.version)])
    except BadVersionError as error:
        reason = "The features are being changed by others. Try again."
        raise ApiError(ErrorCode.FEATURE_UPDATE_FAILED, reason) from error
    for one in updates:
        before = levels.get(one.feature, 0)
        logger.info("feature %s: level %d, before %d", one.feature, one.level, before)


def check_update(update: FeatureUpdate, cluster: Cluster) -> None:
    """Raises ApiError INVALID_UPDATE_VERSION unless the level can be finalised."""
    if update.upgrade_type not in set(UpgradeType):
        raise _refused(update, "The controller does not support the given upgrade type.")
    if update.level < 0:
        raise _refused(update, "A feature version cannot be less than 0.")
    reason = _unsupported(update, cluster)
    if reason is not None:
        raise _refused(update, reason)
    current = cluster.levels.get(update.feature, 0)
    is_upgrade = update.upgrade_type == UpgradeType.UPGRADE
    if update.level < current and is_upgrade:
        raise _refused(
            update,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if update.level > current and not is_upgrade:
        raise _refused(update, "Can't downgrade to a newer version.")
    if update.feature not in {one.name for one in FEATURES}:
        raise _refused(update, f"Feature {update.feature} not found.")


def _unsupported(update: FeatureUpdate, cluster: Cluster) -> str | None:
    """Return the error for the first broker that does not support the level; None if all do."""
    here = BrokerRegistration((), features=FEATURES)
    names = {f"Local controller {cluster.controller_id}": here}
    names |= {f"Broker {one}": cluster.brokers[one] for one in sorted(cluster.brokers)}
    for name, registration in names.items():
        if registration.supports(update.feature, update.level):
            continue
        known = next((one for one in registration.features if one.name == update.feature), None)
        if known is None:
            return f"{name} does not support this feature."
        return f"{name} only supports versions {0}-{known.last}"
    return None


def _refused(update: FeatureUpdate, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {update.level} for feature {update.feature}. {reason}",
    )


async def _registered(store: MetadataStore) -> dict[int, BrokerRegistration]:
    """Every broker that is registered now; of one that cannot be read, nothing is known to work."""
    ids = [int(name) for name in await store.children(BROKER_IDS)]
    nodes = await store.get_many([broker_path(one) for one in ids])
    registered: dict[int, BrokerRegistration] = {}
    for broker_id, node in zip(ids, nodes, strict=True):
        if node is None:
            continue
        try:
            registered[broker_id] = decode_broker(broker_path(broker_id), node.data)
        except MalformedZnodeError:
            registered[broker_id] = BrokerRegistration(())
    return registered
