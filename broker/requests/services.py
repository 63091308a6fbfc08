"""The parts of a broker that handlers use. All of them exist once it is made."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from broker.cluster.control_request_queue import ControlRequestQueue
    from broker.coordinators.groups import GroupCoordinators
    from broker.coordinators.internal_topics import InternalTopics
    from broker.coordinators.producer_id_blocks import ProducerIdBlocks
    from broker.coordinators.services import CoordinatorServices
    from broker.coordinators.share_state.cluster_store import ClusterShareState
    from broker.coordinators.share_state.coordinators import ShareStateCoordinators
    from broker.coordinators.share_state.end_offsets import EndOffsets
    from broker.coordinators.share_state.group_states import GroupStates
    from broker.coordinators.transactions import TransactionCoordinators
    from broker.fetch.fetch_sessions import FetchSessions
    from broker.metadata.acls import Acls
    from broker.metadata.auto_topics import AutoTopics
    from broker.metadata.broker_configs import BrokerConfigs
    from broker.metadata.group_configs import GroupConfigs
    from broker.metadata.metadata_cache import MetadataCache
    from broker.metadata.topic_configs import TopicConfigs
    from broker.partitions.replicas import Replicas
    from broker.quotas.client_quotas import ClientQuotas
    from broker.requests.api_table import Route
    from broker.requests.context import Context
    from broker.runtime.clock import Clock
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.slices import Leftovers, Slices
    from broker.runtime.timers import Timers
    from broker.security.audit_log import AuditLog
    from broker.security.authorizer import Authorizer
    from broker.share_partitions.share_partitions import SharePartitions
    from broker.telemetry.subscriptions import Subscriptions
    from broker.telemetry.telemetry import Telemetry
    from config.broker import BrokerConfig
    from controller.brokers.registrar import Registrar
    from controller.controller import Controller
    from controller.features.finalised import FinalisedFeatures
    from controller.metadata_store.store import MetadataStore
    from controller.security.delegation_tokens import DelegationTokens
    from controller.security.scram_credentials import ScramUsers
    from controller.security.user_configs import UserConfigs
    from controller.topics.topics import TopicCommands
    from storage.directory.directories import LogDirectories

    Handler = Callable[["Context", Any], Any]
    Interpose = Callable[["Route", Handler], Handler]
    """Returns a function to call in a handler's place."""


@dataclasses.dataclass(slots=True)
class BrokerServices:
    """A broker, as seen by its handlers."""

    config: BrokerConfig
    """The present configuration, replaced as a whole when dynamic settings change."""
    clock: Clock
    timers: Timers
    spawn: Callable[[Coroutine[Any, Any, Any], str], asyncio.Task[Any]]
    """Runs a coroutine in the background, in a task that the broker owns."""
    slices: Callable[[], Slices]
    """Slices for one piece of work that may take long."""
    leftovers: Leftovers
    """Releases discarded objects in slices."""
    compute_pool: ComputePool

    is_in_cluster: bool
    """True if there may be other brokers."""
    cluster_id: str
    logs: LogDirectories
    store: MetadataStore
    registrar: Registrar
    metadata: MetadataCache
    topic_configs: TopicConfigs
    broker_configs: BrokerConfigs
    group_configs: GroupConfigs
    user_configs: UserConfigs
    scram_users: ScramUsers
    client_metrics: Subscriptions
    """Subscriptions to metrics of clients."""
    telemetry: Telemetry | None
    """Receives pushed metrics; None without an endpoint for them."""
    features: FinalisedFeatures
    auto_topics: AutoTopics
    replicas: Replicas
    fetch_sessions: FetchSessions
    share_partitions: SharePartitions
    control: ControlRequestQueue
    """Applies the controller's requests, in their order."""
    controller: Controller
    topics: TopicCommands
    internal_topics: InternalTopics
    groups: GroupCoordinators
    transactions: TransactionCoordinators
    share_coordinators: ShareStateCoordinators
    """Share coordinators of this broker, for requests of others."""
    share_state: ClusterShareState
    """Share coordinators of the cluster."""
    group_states: GroupStates
    end_offsets: EndOffsets
    producer_ids: ProducerIdBlocks
    coordination: CoordinatorServices
    quotas: ClientQuotas
    acls: Acls | None
    """ACLs of the authorizer; None without one."""
    authorizer: Authorizer | None
    """Decides on access; None if everything is allowed."""
    audit_log: AuditLog
    """Logs the decisions of the authorizer."""
    delegation_tokens: DelegationTokens | None
    """None without `delegation.token.secret.key`."""
    interpose: Interpose | None = None
    """Puts something before each handler, as tests with `broker.testing` do; None as a rule."""

    @property
    def broker_epoch(self) -> int:
        """The broker epoch: the transaction that registered the broker, -1 before that."""
        return self.registrar.epoch
