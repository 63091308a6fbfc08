"""This broker among others: whom it asks, whom it follows, how it takes its leave.

A broker that is alone has the same parts, and no use for most of them.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, cast

from broker.cluster.control_channels import ControlChannels
from broker.network.broker_link import BrokerLink
from broker.network.links import LinkError
from broker.partitions.alter_partition_sender import AlterPartitionSender
from broker.partitions.partition_services import PartitionServices
from broker.partitions.throttle import replication_throttles
from broker.replica_fetchers.fetch_requests import FetchLimits
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.replication.replica_machine import ReplicaSettings
from config.listeners import read_listeners
from protocol.errors import ApiError, ErrorCode
from protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

if TYPE_CHECKING:
    from broker.cluster.control_request_queue import ControlRequestQueue
    from broker.cluster.services import ClusterServices
    from broker.network.broker_link import Address
    from broker.network.links import Link
    from config.broker import BrokerConfig
    from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
    from protocol.schema import Request, Response

logger = logging.getLogger(__name__)

ALTER_PARTITION_VERSION = 3
CONTROLLED_SHUTDOWN_VERSION = 3
SECOND_MS = 1000
CONTROLLER_CHECK_MS = 50
ANSWER_OVERHEAD_BYTES = 1 << 20
"""What an answer may hold beside the records that were asked for."""


class Cluster:
    """The other brokers, as this one sees them."""

    def __init__(self, broker: ClusterServices) -> None:
        """Needs the broker's configuration, clock, timers and metadata cache."""
        self._broker = broker
        self._config = broker.config
        self._listener = read_listeners(broker.config).inter_broker
        self._to_controller: tuple[int, Link] | None = None
        self._following: ReplicaFetchers | None = None
        self._throttles = replication_throttles(broker.config, broker.clock.monotonic_ms)

    def surroundings(self) -> PartitionServices:
        """What the partitions of this broker share."""
        broker = self._broker
        return PartitionServices(
            replica=ReplicaSettings(
                local_id=self._config.broker_id,
                max_lag_ms=self._config.replica_lag_time_max_ms,
                is_alive=broker.metadata.is_alive,
            ),
            timers=broker.timers,
            clock=broker.clock,
            changes=AlterPartitionSender(
                (self._config.broker_id, lambda: broker.broker_epoch),
                self._alter_partitions,
                broker.timers,
                broker.spawn,
            ),
            throttle=self._throttles.leader,
        )

    def channels(self, local: ControlRequestQueue) -> ControlChannels:
        """The controller's lines to all brokers; `local` is the one to this broker."""
        broker = self._broker

        def is_alive(broker_id: int) -> bool:
            context = broker.controller.context
            return context is not None and broker_id in context.live_brokers

        def connect(broker_id: int) -> Link:
            return BrokerLink(
                f"broker {broker_id}",
                lambda: self._address_from_store(broker_id),
                f"broker-{self._config.broker_id}-controller",
                self._config.controller_socket_timeout_ms,
                ANSWER_OVERHEAD_BYTES,
            )

        return ControlChannels(
            (self._config.broker_id, local), connect, is_alive, broker.supervision
        )

    def start(self) -> None:
        """Follow the leaders of this broker's partitions, and watch over its own followers.

        Call it once the broker is registered, and before the controller speaks to it.
        """
        broker = self._broker
        config = self._config
        broker.auto_topics.is_alone = not broker.is_in_cluster
        settings = FetcherSettings(
            local_id=config.broker_id,
            broker_epoch=lambda: broker.broker_epoch,
            limits=FetchLimits(
                max_wait_ms=config.replica_fetch_wait_max_ms,
                min_bytes=config.replica_fetch_min_bytes,
                max_bytes=config.replica_fetch_response_max_bytes,
                partition_max_bytes=config.replica_fetch_max_bytes,
            ),
            backoff_ms=config.replica_fetch_backoff_ms,
            clock=broker.clock,
            timers=broker.timers,
            disk_threads=broker.replica_threads,
            throttle=self._throttles.follower,
            note_failure=partial(broker.supervision.note, kind="follow partitions"),
        )
        keep = broker.supervision.keep
        self._following = ReplicaFetchers(self, settings, config.num_replica_fetchers, keep)
        broker.replicas.on_assignment(self._following.partition_changed)
        broker.metadata.on_update(broker.replicas.note_brokers)
        broker.timers.every(config.replica_lag_time_max_ms / 2, broker.replicas.check_lag)
        if config.auto_leader_rebalance_enable and broker.is_in_cluster:
            interval_ms = config.leader_imbalance_check_interval_seconds * SECOND_MS
            broker.timers.every(interval_ms, self._balance)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply what changes while the broker runs."""
        if self._following is not None:
            self._following.use(config.num_replica_fetchers)
        self._throttles.leader.bytes_per_second = config.leader_replication_throttled_rate
        self._throttles.follower.bytes_per_second = config.follower_replication_throttled_rate

    def _balance(self) -> None:
        controller = self._broker.controller
        if controller.is_active:
            percentage = self._config.leader_imbalance_per_broker_percentage
            self._broker.spawn(controller.commands.balance(percentage), "leader balance")

    def stop(self) -> None:
        """Follow nobody any more."""
        if self._following is not None:
            self._following.stop()

    async def leave(self) -> None:
        """Have the controller move what this broker leads (`controlled.shutdown.*`)."""
        config = self._config
        request = ControlledShutdownRequest(
            broker_id=config.broker_id, broker_epoch=self._broker.broker_epoch
        )
        for attempt in range(config.controlled_shutdown_max_retries):
            if len(self._broker.metadata.brokers) <= 1:
                return  # nobody is left who could take anything
            if attempt:
                await self._rest_before_asking_again()
            try:
                remaining = await self._relieve(request)
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
        """Wait for `controlled.shutdown.retry.backoff.ms`, or until somebody else is controller."""
        broker = self._broker
        asked = broker.controller.controller_id
        until_ms = broker.clock.monotonic_ms() + self._config.controlled_shutdown_retry_backoff_ms
        while broker.clock.monotonic_ms() < until_ms and broker.controller.controller_id == asked:
            await broker.timers.sleep(CONTROLLER_CHECK_MS)

    # replication.links.Links

    def link(self, broker_id: int, purpose: str) -> Link:
        """A connection to a broker, by the listener for brokers."""
        config = self._config
        return BrokerLink(
            f"broker {broker_id}",
            lambda: self._address_from_metadata(broker_id),
            purpose,
            config.replica_socket_timeout_ms,
            config.replica_fetch_response_max_bytes
            + config.socket_request_max_bytes  # no batch is larger, whatever its topic allows
            + ANSWER_OVERHEAD_BYTES,
        )

    # The controller, wherever it is

    async def _alter_partitions(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        if self._broker.controller.is_active:
            return await self._broker.controller.commands.alter_partitions(request)
        response = await self._ask_controller(request, ALTER_PARTITION_VERSION)
        return cast("AlterPartitionResponse", response)

    async def _relieve(self, request: ControlledShutdownRequest) -> list[tuple[str, int]]:
        controller = self._broker.controller
        if controller.is_active:
            left = await controller.commands.relieve(request.broker_id, request.broker_epoch)
            return [(at.topic, at.partition) for at in left]
        response = cast(
            "ControlledShutdownResponse",
            await self._ask_controller(request, CONTROLLED_SHUTDOWN_VERSION),
        )
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code))
        return [(at.topic_name, at.partition_index) for at in response.remaining_partitions]

    async def _ask_controller(self, request: Request, version: int) -> Response:
        """Ask the broker that is controller; raises ApiError when it does not answer."""
        controller_id = self._broker.controller.controller_id
        if controller_id is None or controller_id == self._config.broker_id:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "there is no controller now")
        if self._to_controller is None or self._to_controller[0] != controller_id:
            if self._to_controller is not None:
                self._to_controller[1].close()
            purpose = f"broker-{self._config.broker_id}-to-controller"
            self._to_controller = controller_id, self.link(controller_id, purpose)
        try:
            return await self._to_controller[1].ask(request, version)
        except LinkError as error:
            raise ApiError(ErrorCode.NOT_CONTROLLER, str(error)) from error

    def _address_from_metadata(self, broker_id: int) -> Address | None:
        node = self._broker.metadata.node(broker_id, self._listener)
        return None if node is None else (node.host, node.port)

    def _address_from_store(self, broker_id: int) -> Address | None:
        """For the controller, which knows a broker before the metadata cache does."""
        context = self._broker.controller.context
        broker = None if context is None else context.live_brokers.get(broker_id)
        if broker is None:
            return None
        for endpoint in broker.registration.endpoints:
            if endpoint.listener == self._listener:
                return endpoint.host, endpoint.port
        return None
