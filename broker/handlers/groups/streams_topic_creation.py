"""Creates the internal topics that a heartbeat of a streams group found missing.

In the name of the client: it needs CREATE on the cluster or on each topic, and its controller
mutation quota applies. The response does not wait: its status reports missing topics, and why.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.handlers.topics.bounded_creation import create_within
from broker.handlers.topics.default_counts import BROKER_DEFAULT, replication_factor_or_default
from broker.requests.authorization import allowed as allowed_names
from broker.requests.authorization import would_be_allowed_on_cluster
from config.alteration import validate_topic_config
from config.errors import ConfigError
from controller.metadata_store.store import StoreError
from controller.topics.topics import CreatedTopic, NewTopic
from coordinator.streams_groups.topology import StatusCode
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.requests.context import Context
    from coordinator.streams_groups.topology import InternalTopic
    from protocol.messages.streams_groups import StreamsGroupHeartbeatResponse

logger = logging.getLogger(__name__)

SHOWN_FAILURES: Final = 3
"""Maximum number of failures that a status reports."""


def create_missing(
    context: Context,
    group_id: str,
    missing: Mapping[str, InternalTopic],
    response: StreamsGroupHeartbeatResponse,
) -> None:
    """Begin to create topics, and say in the answer why some cannot be."""
    broker = context.broker
    denied = _denied(context, missing)
    if denied:
        _add(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
        return
    topics, now_ms = broker.groups.streams_topics, broker.clock.monotonic_ms()
    retry_ms = 2 * broker.groups.settings.streams.heartbeat_interval_of(group_id)
    names = topics.begin(sorted(missing), now_ms)
    if names:
        creation = _Creation(context, group_id, retry_ms)
        wanted = creation.plan([missing[name] for name in names])
        if wanted:
            broker.spawn(creation.run(wanted), f"internal topics of streams group {group_id}")
    failures = topics.failures(sorted(missing), now_ms)
    if failures:
        shown = ", ".join(f"{name} ({why})" for name, why in [*failures.items()][:SHOWN_FAILURES])
        more = len(failures) - SHOWN_FAILURES
        _add(response, f"; Creation failed: {shown}{f' and {more} more' if more > 0 else ''}.")


def _denied(context: Context, missing: Mapping[str, InternalTopic]) -> list[str]:
    if would_be_allowed_on_cluster(context, AclOperation.CREATE):
        return []
    names = allowed_names(context, AclOperation.CREATE, ResourceType.TOPIC, missing)
    return sorted(missing.keys() - names)


def _add(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += detail


class _Creation:
    """The creation of some topics, each of which ends as created or failed."""

    def __init__(self, context: Context, group_id: str, retry_ms: int) -> None:
        self._context = context
        self._broker = context.broker
        self._group_id = group_id
        self._retry_ms = retry_ms

    def plan(self, topics: Sequence[InternalTopic]) -> list[NewTopic]:
        """The topics that can be created; the others have failed."""
        planned = []
        for topic in topics:
            try:
                planned.append(self._planned(topic))
            except ApiError as error:
                self._failed(topic.name, error)
        try:
            self._broker.topics.check_total(topic.partitions for topic in planned)
        except ApiError as error:
            for new in planned:
                self._failed(new.name, error)
            return []
        return planned

    def _planned(self, topic: InternalTopic) -> NewTopic:
        configs = dict(topic.configs)
        try:
            validate_topic_config(configs, self._broker.topic_configs.defaults)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
        asked = topic.replication_factor or BROKER_DEFAULT
        factor = replication_factor_or_default(self._broker.config, asked)
        if self._context.meter is not None:
            self._context.meter.note_mutations(topic.partitions)
        return NewTopic(topic.name, topic.partitions, factor, configs=configs)

    async def run(self, topics: Sequence[NewTopic]) -> None:
        """Create topics; errors are reported in the next heartbeat."""
        left = {topic.name for topic in topics}
        timeout_ms = self._broker.config.request_timeout_ms
        reason = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            results = await create_within(self._broker, topics, timeout_ms, validate_only=False)
            for name, result in results.items():
                left.discard(name)
                if isinstance(result, CreatedTopic):
                    logger.info("topic %s created for streams group %s", name, self._group_id)
                    self._broker.groups.streams_topics.created(name)
                else:
                    self._failed(name, result)
        except StoreError as error:
            reason = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        finally:
            for name in left:
                self._failed(name, reason)

    def _failed(self, name: str, error: ApiError) -> None:
        now_ms = self._broker.clock.monotonic_ms()
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            self._broker.groups.streams_topics.created(name)
            return
        message = error.message or error.code.meaning
        logger.warning(
            "topic %s not created for streams group %s: %s", name, self._group_id, message
        )
        until_ms = now_ms + self._retry_ms
        self._broker.groups.streams_topics.failed(name, message, now_ms, until_ms)
