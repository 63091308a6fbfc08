"""The parts of a broker that have to do with controller and replicas, put together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.cluster.admission import describe_broker
from broker.cluster.broker_links import BrokerLinks
from broker.cluster.cluster import Cluster
from broker.cluster.control_channels import Ways, controller_with_channels
from broker.cluster.control_request_queue import ControlRequestQueue
from broker.cluster.controller_client import ControllerClient
from broker.metadata.metadata_cache import MetadataCache
from broker.partitions.alter_partition_sender import AlterPartitionSender
from broker.partitions.partition_services import PartitionServices
from broker.partitions.replicas import Replicas
from broker.partitions.throttle import replication_throttles
from broker.replica_fetchers.fetch_requests import FetchLimits
from broker.replica_fetchers.fetcher import FetcherSettings
from broker.replica_fetchers.replica_fetchers import ReplicaFetchers
from broker.replication.replica_machine import ReplicaSettings
from controller.brokers.registrar import BrokerIdTakenError, Registrar

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.partitions.throttle import Throttle
    from broker.runtime.event_loop import BackgroundLoop
    from broker.startup.addresses import Addresses
    from broker.startup.logs import LogStorage
    from broker.startup.machine import Machine
    from broker.startup.metadata import OpenMetadata
    from broker.startup.settings import Settings
    from config.broker import BrokerConfig
    from controller.controller import Controller
    from controller.metadata_store.store import MetadataStore

SESSIONS_TO_WAIT = 2
"""Number of session timeouts a broker waits for a node that its earlier life left behind."""


class Foundation(NamedTuple):
    """The stages before, on which the parts are built."""

    machine: Machine
    addresses: Addresses
    storage: LogStorage
    metadata: OpenMetadata
    settings: Settings

    @property
    def config(self) -> BrokerConfig:
        """As the store has settled it."""
        return self.settings.broker.current


class ClusterParts(NamedTuple):
    """Parts that know other brokers."""

    links: BrokerLinks
    registrar: Registrar
    metadata: MetadataCache
    control: ControlRequestQueue
    controller: Controller
    replicas: Replicas
    cluster: Cluster


def cluster_parts(base: Foundation) -> ClusterParts:
    """Put them together: each stands on those before, and nothing is at work yet."""
    config, loop = base.config, base.machine.background
    metadata = MetadataCache()
    metadata.on_failure = loop.note
    security = base.addresses.protections.links
    links = BrokerLinks(config, metadata, security)
    control = ControlRequestQueue()
    store, supervision = base.metadata.store, base.machine.supervision
    controller = controller_with_channels(config, store, Ways(control, security), loop, supervision)
    registrar = _registrar(config, store, base.addresses, loop)
    _connect(controller, registrar, base)
    client = ControllerClient(config.broker_id, controller, links)
    throttles = replication_throttles(config, loop.clock.monotonic_ms)
    sender = AlterPartitionSender(
        (config.broker_id, lambda: registrar.epoch),
        client.alter_partitions,
        loop.timers,
        supervision.spawn,
    )
    shared = PartitionServices(
        replica=ReplicaSettings(
            local_id=config.broker_id,
            max_lag_ms=config.replica_lag_time_max_ms,
            is_alive=metadata.is_alive,
        ),
        timers=loop.timers,
        clock=loop.clock,
        changes=sender,
        flushes=base.storage.group_commit,
        throttle=throttles.leader,
    )
    replicas = Replicas(base.storage.logs, base.settings.topics, shared)
    settings = _fetcher_settings(
        config, loop, registrar, throttles.follower, base.storage.replica_threads
    )
    fetchers = ReplicaFetchers(links, settings, config.num_replica_fetchers, supervision.keep)
    cluster = Cluster(
        config, loop, registrar, metadata, replicas, controller, client, fetchers, throttles
    )
    return ClusterParts(links, registrar, metadata, control, controller, replicas, cluster)


def _registrar(
    config: BrokerConfig, store: MetadataStore, addresses: Addresses, loop: BackgroundLoop
) -> Registrar:
    return Registrar(
        store,
        config.broker_id,
        lambda: describe_broker(config, addresses.advertised.values(), loop.clock.now_ms()),
        SESSIONS_TO_WAIT * config.zookeeper_session_timeout_ms,
    )


def _connect(controller: Controller, registrar: Registrar, base: Foundation) -> None:
    """Connect the controller to this broker's registration in the store."""

    async def register_again() -> None:
        try:
            await registrar.ensure()
        except BrokerIdTakenError as error:
            base.machine.stop.give_up(str(error))
            raise

    controller.before_election = register_again
    controller.on_failure = base.machine.supervision.note
    base.metadata.store.on_interruption(controller.interrupted)


def _fetcher_settings(
    config: BrokerConfig,
    loop: BackgroundLoop,
    registrar: Registrar,
    throttle: Throttle,
    disk_threads: Executor,
) -> FetcherSettings:
    note: Callable[..., None] = loop.note
    return FetcherSettings(
        local_id=config.broker_id,
        broker_epoch=lambda: registrar.epoch,
        limits=FetchLimits(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            partition_max_bytes=config.replica_fetch_max_bytes,
        ),
        backoff_ms=config.replica_fetch_backoff_ms,
        clock=loop.clock,
        timers=loop.timers,
        disk_threads=disk_threads,
        throttle=throttle,
        note_failure=partial(note, kind="follow partitions"),
    )
