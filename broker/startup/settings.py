"""The fifth stage of a start: what is configured holds, for this broker and for topics."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.topic_configs import TopicConfigs
from controller.security.scram_credentials import ScramUsers
from controller.security.user_configs import UserConfigs

if TYPE_CHECKING:
    from broker.startup.metadata import OpenMetadata


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The property file and the metadata store together, now and after each change."""

    broker: BrokerConfigs
    topics: TopicConfigs
    users: UserConfigs
    """Of users, client ids and addresses; read once those who listen are there."""
    scram_users: ScramUsers


async def read_settings(metadata: OpenMetadata) -> Settings:
    """Read what is set in the store, and hear of changes from now on."""
    config, store = metadata.config, metadata.store
    topics = TopicConfigs(store, config.topic_defaults(), metadata.machine.supervision.keep)
    broker = BrokerConfigs(config, topics.dynamic)
    await metadata.do(topics.start)
    await metadata.do(lambda: broker.load(store))
    await topics.apply_defaults(broker.current.topic_defaults(), ())
    users, scram_users = UserConfigs(store, topics.dynamic), ScramUsers()
    topics.dynamic.on_change(scram_users.changed)
    return Settings(broker, topics, users, scram_users)
