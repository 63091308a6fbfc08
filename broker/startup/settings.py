"""The fifth stage of a start: the settings of this broker and of topics are in effect."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from broker.metadata.acls import Acls
from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.group_configs import GroupConfigs
from broker.metadata.topic_configs import TopicConfigs
from broker.startup.start_error import StartError
from broker.telemetry.subscriptions import Subscriptions
from controller.features.finalised import (
    FeatureOwner,
    FinalisedFeatures,
    UnusableFeaturesError,
)
from controller.security.scram_credentials import ScramUsers
from controller.security.user_configs import UserConfigs
from controller.znodes import MalformedZnodeError

if TYPE_CHECKING:
    from broker.startup.logs import LogStorage
    from broker.startup.machine import Machine
    from broker.startup.metadata import OpenMetadata
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The property file and the metadata store together, now and after each change."""

    broker: BrokerConfigs
    topics: TopicConfigs
    groups: GroupConfigs
    client_metrics: Subscriptions
    users: UserConfigs
    """Quotas of users, client ids and addresses; read once their subscribers exist."""
    scram_users: ScramUsers
    features: FinalisedFeatures
    """The levels at which the cluster works."""
    acls: Acls | None
    """None without an authorizer."""


async def read_settings(metadata: OpenMetadata, storage: LogStorage) -> Settings:
    """Read the settings in the store, and subscribe to changes."""
    machine = metadata.machine
    config, store = metadata.config, metadata.store
    topics = TopicConfigs(store, config.topic_defaults(), metadata.machine.supervision.keep)
    broker = BrokerConfigs(
        config, topics.dynamic, partial(machine.loop.run_in_executor, storage.disk_threads)
    )
    await metadata.do(topics.start)
    await metadata.do(lambda: broker.load(store))
    await topics.apply_defaults(broker.current.topic_defaults(), ())
    users, scram_users = UserConfigs(store, topics.dynamic), ScramUsers()
    topics.dynamic.on_change(scram_users.changed)
    acls = acls_of(config, store, metadata.machine)
    if acls is not None:
        await metadata.do(partial(_read_acls, acls))
    groups = GroupConfigs(store, topics.dynamic, lambda: broker.current)
    await metadata.do(groups.load)
    client_metrics = Subscriptions(store, topics.dynamic)
    await metadata.do(client_metrics.load)
    features = features_of(config, store, machine)
    await metadata.do(partial(_read_features, features))
    return Settings(broker, topics, groups, client_metrics, users, scram_users, features, acls)


def acls_of(config: BrokerConfig, store: MetadataStore, machine: Machine) -> Acls | None:
    """Access control lists, to be read, if there is an authorizer to decide by them."""
    if not config.authorizer_class_name:
        return None
    return Acls(config, store, machine.background.slices, machine.supervision.keep)


def features_of(config: BrokerConfig, store: MetadataStore, machine: Machine) -> FinalisedFeatures:
    """The finalised features, to be read."""
    owner = FeatureOwner(machine.supervision.keep, machine.stop.give_up)
    return FinalisedFeatures(store, owner, is_alone=not config.zookeeper_connect)


async def _read_features(features: FinalisedFeatures) -> None:
    """Read them before any client is served. Raises StartError."""
    try:
        await features.start()
    except UnusableFeaturesError as error:
        raise StartError(str(error)) from None


async def _read_acls(acls: Acls) -> None:
    """Read them before any client is served. Raises StartError."""
    try:
        await acls.start()
    except MalformedZnodeError as error:
        raise StartError(f"ACLs cannot be read: {error}") from None
