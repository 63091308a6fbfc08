"""This broker among others: registration, leadership and following, controlled shutdown.

A broker that is alone has the same parts, and no use for most of them.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from broker.network.links import LinkError
from broker.partitions.partition import Partition
from broker.partitions.partition_round import PartitionRound
from protocol.errors import ApiError
from protocol.messages.controlled_shutdown import ControlledShutdownRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.controller_client import ControllerClient
    from broker.metadata.metadata_cache import MetadataCache
    from broker.partitions.replicas import Replicas
    from broker.partitions.throttle import Throttles
    from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
    from broker.runtime.event_loop import BackgroundLoop
    from config.broker import BrokerConfig
    from controller.brokers.registrar import Registrar
    from controller.controller import Controller
    from protocol.messages.update_metadata import UpdateMetadataRequest

logger = logging.getLogger(__name__)

SECOND_MS = 1000
CONTROLLER_CHECK_MS = 50


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Reactions of a broker to the others."""

    config: BrokerConfig
    loop: BackgroundLoop
    registrar: Registrar
    metadata: MetadataCache
    replicas: Replicas
    controller: Controller
    """This broker's, active or not."""
    client: ControllerClient
    fetchers: ReplicaFetchers
    throttles: Throttles

    def start(self) -> None:
        """Follow the leaders of this broker's partitions, and watch over its own followers.

        Call it once the broker is registered, and before the controller speaks to it.
        """
        config, timers = self.config, self.loop.timers
        self.replicas.on_assignment(self.fetchers.partition_changed)

        def of_followers(step: Callable[[Partition], None], name: str) -> PartitionRound:
            followed = self.replicas.followed
            return PartitionRound(self.replicas, self.loop, step, name, followed)

        deaths = of_followers(Partition.brokers_changed, "change of brokers")

        def hear(request: UpdateMetadataRequest) -> None:
            """End waits for a follower whose broker has died."""
            if self.replicas.note_brokers(request):
                deaths.begin()

        self.metadata.on_update(hear)
        lag = of_followers(Partition.check_lag, "follower lag")
        timers.every(config.replica_lag_time_max_ms / 2, lag.begin)
        if config.auto_leader_rebalance_enable and config.zookeeper_connect:
            interval_ms = config.leader_imbalance_check_interval_seconds * SECOND_MS
            timers.every(interval_ms, self._balance)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply what changes while the broker runs."""
        self.fetchers.use(config.num_replica_fetchers)
        self.throttles.leader.bytes_per_second = config.leader_replication_throttled_rate
        self.throttles.follower.bytes_per_second = config.follower_replication_throttled_rate

    def _balance(self) -> None:
        if self.controller.is_active:
            self.loop.spawn(self._elect_preferred_leaders(), "leader balance")

    async def _elect_preferred_leaders(self) -> None:
        try:
            await self.controller.commands.balance(
                self.config.leader_imbalance_per_broker_percentage
            )
        except ApiError as error:  # ZooKeeper is away, or another broker controls by now
            logger.info("leader balance is left to the next check: %s", error)

    def stop(self) -> None:
        """Stop following."""
        self.fetchers.stop()

    async def leave(self) -> None:
        """Have the controller move what this broker leads (`controlled.shutdown.*`)."""
        config = self.config
        request = ControlledShutdownRequest(
            broker_id=config.broker_id, broker_epoch=self.registrar.epoch
        )
        for attempt in range(config.controlled_shutdown_max_retries):
            if len(self.metadata.brokers) <= 1:
                return  # no broker is left to take over
            if attempt:
                await self._rest_before_asking_again()
            try:
                remaining = await self.client.relieve(request)
            except (ApiError, LinkError) as error:
                logger.warning("controlled shutdown failed: %s", error)
                continue
            if not remaining:
                return
            logger.warning(
                "controlled shutdown: no replica can take over %s",
                ", ".join(f"{topic}-{index}" for topic, index in remaining),
            )
        logger.warning("controlled shutdown given up, stopping")

    async def _rest_before_asking_again(self) -> None:
        """Wait for `controlled.shutdown.retry.backoff.ms`, or until the controller changes."""
        clock, timers = self.loop.clock, self.loop.timers
        asked = self.controller.controller_id
        until_ms = clock.monotonic_ms() + self.config.controlled_shutdown_retry_backoff_ms
        while clock.monotonic_ms() < until_ms and self.controller.controller_id == asked:
            await timers.sleep(CONTROLLER_CHECK_MS)
