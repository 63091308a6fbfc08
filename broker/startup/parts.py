"""The last stage of a start: all parts of a broker are there, and none is at work yet."""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.cluster.control_request_queue import ControlRequests
from broker.cluster.deleted_topics import forget_deleted_topics
from broker.coordinators.groups import GroupCoordinators
from broker.coordinators.internal_topics import GROUP_KEY, SHARE_KEY, InternalTopics
from broker.coordinators.marker_sender import MarkerSender
from broker.coordinators.peers import Peers
from broker.coordinators.producer_id_blocks import ProducerIdBlocks
from broker.coordinators.services import CoordinatorServices
from broker.coordinators.share_state.cluster_store import ClusterShareState, Reach
from broker.coordinators.share_state.coordinators import ShareStateCoordinators
from broker.coordinators.share_state.end_offsets import EndOffsets
from broker.coordinators.share_state.group_states import GroupStates
from broker.coordinators.transactions import TransactionCoordinators, TransactionRules
from broker.delivery.dead_letter_relay import DeadLetterPorts
from broker.delivery.dead_letter_sender import DeadLetterSender, SenderParts
from broker.delivery.deliveries import Deliveries
from broker.delivery.delivery_parts import DeliveryParts, delivery_limits
from broker.fetch.fetch_sessions import FetchSessions, SessionLimits
from broker.key_index.key_index import KeyIndex
from broker.maintenance.failed_disks import FailedDisks, FailureAnnouncement
from broker.maintenance.housekeeping import Housekeeping
from broker.maintenance.key_indexer import KeyIndexer
from broker.maintenance.log_cleaner import LogCleaner
from broker.maintenance.log_mover import LogMover
from broker.metadata.auto_topics import AutoTopics
from broker.metrics.optional_metrics import metrics_at
from broker.metrics.sources import Sources
from broker.partitions.partition import Partition
from broker.partitions.partition_round import PartitionRound
from broker.quotas.client_quotas import ClientQuotas
from broker.reconfiguration import Reconfigurable, reconfigure
from broker.requests.services import BrokerServices
from broker.runtime import failpoints
from broker.runtime.slices import Leftovers
from broker.security.audit_log import AuditLog
from broker.startup.cluster_parts import cluster_parts
from broker.startup.listeners.authentication import settle_authentication
from broker.startup.listeners.changes import ListenerChanges
from broker.startup.share_parts import share_partitions
from broker.startup.telemetry_parts import telemetry_of
from broker.startup.token_parts import delegation_tokens, let_tokens_log_in, token_expiry
from controller.brokers.producer_ids import allocate_producer_ids
from controller.metadata_store.store import StoreError
from controller.topics.topics import TopicCommands

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.maintenance.token_expiry import TokenExpiry
    from broker.metrics.broker_metrics import Metrics
    from broker.metrics.optional_metrics import NoMetrics
    from broker.startup.cluster_parts import ClusterParts, Foundation
    from config.topic import TopicConfig
    from storage.log.log import Log

KEY_INDEX_KEY = "key.index.enable"
REGISTER_AGAIN_MS = 1000
"""Pause after the store refused a change of the registration. Fixed: it is one small write."""
SESSION_EVICTION_MS = 120_000
"""Idle time after which a fetch session may be evicted for a new one (as in Apache)."""

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a broker."""

    services: BrokerServices
    """Services for handlers."""
    cluster: Cluster
    applied: ControlRequests
    """Results of `services.control`."""
    deliveries: Deliveries
    housekeeping: Housekeeping
    cleaner: LogCleaner | None
    """None when nothing is compacted here."""
    mover: LogMover
    key_index: KeyIndex
    metrics: Metrics | NoMetrics
    token_expiry: TokenExpiry | None
    """None without delegation tokens."""


class _Coordination(NamedTuple):
    """Parts that have to do with groups, transactions and the state of share groups."""

    topics: TopicCommands
    auto_topics: AutoTopics
    producer_ids: ProducerIdBlocks
    services: CoordinatorServices
    transactions: TransactionCoordinators
    share_coordinators: ShareStateCoordinators
    share_state: ClusterShareState
    end_offsets: EndOffsets


def put_together(base: Foundation) -> Parts:
    """Create all parts, each on those before, and connect their notifications."""
    cluster = cluster_parts(base)
    coordination = _coordination(base, cluster)
    services = _services(base, cluster, coordination)
    deliveries = _deliveries(base, cluster, coordination)
    _listen(base, services, deliveries)
    machine, config, logs = base.machine, base.config, base.storage.logs
    loop, threads = machine.background, base.storage.disk_threads
    starts = PartitionRound(cluster.replicas, loop, Partition.note_start, "log start")
    housekeeping = Housekeeping(config, logs, loop, threads, starts.begin)
    cleaner = (
        LogCleaner(config, logs, loop, threads, machine.supervision)
        if config.log_cleaner_enable
        else None
    )
    mover = LogMover(config, logs, loop, threads)
    key_index = _key_index(base, services, deliveries)
    applied = ControlRequests(
        cluster.replicas, cluster.metadata, base.settings.topics, loop.slices, loop.timers
    )
    listeners, files = base.addresses.listeners, machine.open_files
    sasl = base.addresses.authentication.listeners
    sources = Sources(
        services,
        machine.supervision,
        files,
        listeners,
        housekeeping,
        cleaner,
        sasl,
        key_index,
        deliveries,
    )
    metrics = metrics_at(base.addresses.metrics, sources)
    expiry = token_expiry(services)
    return Parts(
        services,
        cluster.cluster,
        applied,
        deliveries,
        housekeeping,
        cleaner,
        mover,
        key_index,
        metrics,
        expiry,
    )


def _key_index(base: Foundation, services: BrokerServices, deliveries: Deliveries) -> KeyIndex:
    """Look-ups by key, and their sources."""
    machine, topics = base.machine, base.settings.topics

    def logs() -> list[Log]:
        """Logs of topics that may be indexed: others cost one look at their overrides."""
        return [
            partition.log
            for topic in topics.topics_that_set(KEY_INDEX_KEY)
            for partition in services.replicas.by_topic.get(topic, {}).values()
        ]

    loop, threads = machine.background, base.storage.disk_threads
    indexer = KeyIndexer(base.config, logs, loop, threads, machine.supervision)
    return KeyIndex(indexer, base.addresses.lookups, services, deliveries)


async def configure(base: Foundation, parts: Parts) -> None:
    """Apply the configuration to the parts, now and after each change."""
    limits = base.addresses.limits
    concerned = Reconfigurable(parts.services, parts.cluster, limits, parts.cleaner, parts.mover)
    await reconfigure(concerned, base.config)
    base.settings.broker.on_change(partial(reconfigure, concerned))
    changes = ListenerChanges(base.addresses, base.machine, partial(_register_anew, base, parts))
    await changes.change(base.config)
    base.settings.broker.on_check(changes.check)
    base.settings.broker.on_change(changes.change)
    await base.metadata.do(base.settings.users.load)
    authentication, layers = base.addresses.authentication, base.settings.broker.layers
    settle_authentication(authentication, base.config, {*layers.cluster, *layers.broker})
    authentication.credentials.users = base.settings.scram_users
    let_tokens_log_in(base, parts.services.delegation_tokens)


async def _register_anew(base: Foundation, parts: Parts) -> None:
    """In the background: the change applies, whether or not the store is reachable."""
    machine, services = base.machine, parts.services

    async def renew() -> None:
        try:
            await services.registrar.renew()
        except StoreError as error:
            logger.warning("listeners: others do not know of the change yet: %s", error)
            await machine.timers.sleep(REGISTER_AGAIN_MS)
            await services.store.wait_until_reachable()
            await renew()

    machine.supervision.spawn(renew(), "registration")


def _coordination(base: Foundation, cluster: ClusterParts) -> _Coordination:
    config, loop, spawn = base.config, base.machine.background, base.machine.supervision.spawn
    store, metadata = base.metadata.store, cluster.metadata
    most = config.max_new_partitions_per_request
    topics = TopicCommands(store, base.machine.chance, most, loop.slices)
    auto_topics = AutoTopics(config, metadata, topics, spawn)
    auto_topics.is_alone = not config.zookeeper_connect
    internal_topics = InternalTopics(config, metadata, auto_topics, spawn)
    groups = GroupCoordinators(
        config,
        loop,
        lambda: internal_topics.partition_count(GROUP_KEY),
        metadata,
        base.settings.groups,
    )
    producer_ids = ProducerIdBlocks(lambda: allocate_producer_ids(store, config.broker_id))
    services = CoordinatorServices(
        config=config,
        clock=loop.clock,
        timers=loop.timers,
        spawn=spawn,
        slices=loop.slices,
        store=store,
        metadata=metadata,
        replicas=cluster.replicas,
        links=cluster.links,
        internal_topics=internal_topics,
        groups=groups,
    )
    share_coordinators = ShareStateCoordinators(
        config, loop, lambda: internal_topics.partition_count(SHARE_KEY), metadata
    )
    peers = Peers(services)
    share_state = ClusterShareState(
        Reach(
            config.broker_id,
            share_coordinators,
            internal_topics,
            peers,
            loop.timers,
            config.share_state_retry_timeout_ms,
        )
    )
    reached = failpoints.armed(os.environ)
    groups.step_reached = share_coordinators.step_reached = reached
    sender = MarkerSender(peers, loop.clock, loop.timers, reached)
    rules = TransactionRules(config, base.settings.features)
    transactions = TransactionCoordinators(rules, loop, producer_ids, sender, peers)
    transactions.step_reached = reached
    return _Coordination(
        topics,
        auto_topics,
        producer_ids,
        services,
        transactions,
        share_coordinators,
        share_state,
        EndOffsets(config.broker_id, metadata, cluster.replicas, peers),
    )


def _services(
    base: Foundation, cluster: ClusterParts, coordination: _Coordination
) -> BrokerServices:
    config, machine = base.config, base.machine
    leftovers = Leftovers(machine.supervision.spawn, machine.background.slices)
    return BrokerServices(
        config=config,
        clock=machine.clock,
        timers=machine.timers,
        spawn=machine.supervision.spawn,
        slices=machine.background.slices,
        leftovers=leftovers,
        compute_pool=base.storage.compute_pool,
        is_in_cluster=bool(config.zookeeper_connect),
        cluster_id=base.metadata.cluster_id,
        logs=base.storage.logs,
        store=base.metadata.store,
        registrar=cluster.registrar,
        metadata=cluster.metadata,
        topic_configs=base.settings.topics,
        broker_configs=base.settings.broker,
        group_configs=base.settings.groups,
        user_configs=base.settings.users,
        scram_users=base.settings.scram_users,
        client_metrics=base.settings.client_metrics,
        telemetry=telemetry_of(base),
        features=base.settings.features,
        auto_topics=coordination.auto_topics,
        replicas=cluster.replicas,
        fetch_sessions=FetchSessions(
            SessionLimits(
                config.max_incremental_fetch_session_cache_slots,
                config.max_incremental_fetch_session_cache_partitions,
                SESSION_EVICTION_MS,
            ),
            lambda: secrets.randbelow(2**31 - 1) + 1,
            leftovers.add,
        ),
        share_partitions=share_partitions(base, cluster.replicas, coordination.share_state),
        control=cluster.control,
        controller=cluster.controller,
        topics=coordination.topics,
        internal_topics=coordination.services.internal_topics,
        groups=coordination.services.groups,
        transactions=coordination.transactions,
        share_coordinators=coordination.share_coordinators,
        share_state=coordination.share_state,
        group_states=GroupStates(coordination.share_state, machine.background.slices),
        end_offsets=coordination.end_offsets,
        producer_ids=coordination.producer_ids,
        coordination=coordination.services,
        quotas=ClientQuotas(config, machine.supervision.spawn),
        acls=base.settings.acls,
        authorizer=None if base.settings.acls is None else base.settings.acls.authorizer,
        audit_log=AuditLog(config, machine.clock.monotonic_ms),
        delegation_tokens=delegation_tokens(config, base.metadata.store, machine),
    )


def _deliveries(base: Foundation, cluster: ClusterParts, coordination: _Coordination) -> Deliveries:
    loop, compute_pool = base.machine.background, base.storage.compute_pool
    sender = DeadLetterSender(
        SenderParts(
            base.config.broker_id,
            loop.clock,
            cluster.metadata,
            coordination.auto_topics,
            cluster.replicas,
            cluster.links,
            compute_pool,
        )
    )
    ports = DeadLetterPorts(sender, coordination.producer_ids.obtain)
    limits = delivery_limits(base.config)
    threads = base.storage.disk_threads
    return Deliveries(DeliveryParts(loop, compute_pool, threads, ports, limits))


def _listen(base: Foundation, services: BrokerServices, deliveries: Deliveries) -> None:
    """Subscribe the parts to each other's events."""
    machine, logs, replicas = base.machine, services.logs, services.replicas
    announcement = FailureAnnouncement(
        services.store, base.config.broker_id, machine.timers, machine.supervision
    )
    announce = partial(machine.loop.call_soon_threadsafe, announcement.begin)
    logs.on_failure = FailedDisks(logs, machine.stop.give_up, announce).note
    replicas.on_leadership_change(services.groups.partition_changed)
    replicas.on_leadership_change(services.transactions.partition_changed)
    replicas.on_leadership_change(services.share_coordinators.partition_changed)
    replicas.on_leadership_change(services.share_partitions.partition_changed)
    replicas.on_leadership_change(deliveries.partition_changed)
    services.topic_configs.dynamic.on_change(services.quotas.changed)
    base.addresses.limits.throttle_ms = partial(_throttle_connection, services)
    services.topic_configs.on_change(partial(_apply_topic_config, services, deliveries))
    services.metadata.on_update(
        partial(
            forget_deleted_topics,
            logs,
            services.topic_configs,
            services.groups,
            services.share_coordinators,
        )
    )


def _throttle_connection(services: BrokerServices, address: str) -> int:
    rates = services.quotas.connections
    return rates.throttle_ms(address, services.clock.monotonic_ms()) if rates.is_enabled else 0


async def _apply_topic_config(
    services: BrokerServices, deliveries: Deliveries, topic: str, config: TopicConfig
) -> None:
    if config.unclean_leader_election_enable:
        services.controller.allow_unclean()
    partitions = list(services.replicas.by_topic.get(topic, {}).values())
    async for partition in services.slices().each(partitions):
        services.replicas.configure(partition, config)
        deliveries.config_changed(partition)
