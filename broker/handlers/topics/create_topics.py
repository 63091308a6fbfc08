"""CreateTopics: served by the controller, answered once metadata shows the leaders.

Versions 0 to 7. A count of -1 (v4) means the broker's default; a manual assignment excludes both
counts. From v5 the answer has counts and configuration, from v7 the topic id. A topic that is named
twice is refused, and only that one. With `validate_only` (v1) nothing is created.

A request for more partitions than `max.new.partitions.per.request` is refused whole, before its
names and configurations are looked at.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.handlers.topics.bounded_creation import create_within
from broker.handlers.topics.default_counts import (
    BROKER_DEFAULT,
    partitions_or_default,
    replication_factor_or_default,
)
from broker.handlers.topics.delivery_settings import check_delivery
from broker.handlers.topics.mutation_quota import refused_creations
from broker.metadata.metadata_watch import (
    not_controller,
    repeated_among,
    timed_out,
    wait_for_topics,
)
from broker.requests.api_table import handles
from broker.requests.authorization import may_create_topic, would_be_allowed_on_topic
from broker.requests.background_answer import answer_later
from broker.requests.encoded_response import encoded_in_slices
from config.alteration import validate_topic_config
from config.describe import describe_topic
from config.errors import ConfigError
from controller.topics.topics import CreatedTopic, NewTopic
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode, detached
from protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from broker.runtime.slices import Slices
    from config.describe import ConfigEntry

logger = logging.getLogger(__name__)

Wanted = CreateTopicsRequest.Topic
Answer = CreateTopicsResponse.Topic

MOST_VALUES = 1000
"""Of one topic: more are unknown or repeated, and would be looked at in one go."""
KRAFT_METADATA_TOPIC = "__cluster_metadata"
FIRST_VERSION_WITH_CONFIGS = 5


@handles(CreateTopicsRequest, versions="0-7")
def create_topics(
    context: Context, request: CreateTopicsRequest
) -> CreateTopicsResponse | Deferred[CreateTopicsResponse]:
    """Check all topics, create the valid ones, wait for their leaders."""

    async def refuse(error: ApiError) -> CreateTopicsResponse:
        slices = context.broker.slices()
        answers = {t.name: _refusal(t.name, error) async for t in slices.each(request.topics)}
        return CreateTopicsResponse(topics=list(answers.values()))

    return answer_later(context, _create(context, request), refuse, "create topics")


async def _create(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    broker = context.broker
    slices = broker.slices()
    if not broker.controller.is_active:
        raise not_controller()
    planned, refused = await _plan(context, request.topics, slices)
    refused |= await refused_creations(context, planned.values())
    wanted = [topic for name, topic in planned.items() if name not in refused]
    results = await create_within(
        broker, wanted, request.timeout_ms, validate_only=request.validate_only
    )
    created = {n: r for n, r in results.items() if isinstance(r, CreatedTopic)}
    if not request.validate_only:
        async for name, topic in slices.each(created.items()):
            logger.info("topic %s created: %s, requested by %s", name, topic, context.client_host)
        for name in await _wait_for_leaders(context, created, request.timeout_ms):
            results[name] = timed_out(name, "created")
    answers = []
    descriptions = _Descriptions(context)
    names = {topic.name: None async for topic in slices.each(request.topics)}
    async for name in slices.each(names):
        result = refused.get(name) or results[name]
        if isinstance(result, ApiError):
            answers.append(_refusal(name, result))
        else:
            answers.append(_success(name, result, descriptions.of(name, planned[name].configs)))
    return await encoded_in_slices(context, CreateTopicsResponse(topics=answers))


async def _plan(
    context: Context, topics: Iterable[Wanted], slices: Slices
) -> tuple[dict[str, NewTopic], dict[str, ApiError]]:
    """The topics to create, and the errors of the others. Raises ApiError for the whole request."""
    doubles = await repeated_among((topic.name for topic in topics), slices)
    refused = {name: _repeated(name) async for name in slices.each(doubles)}
    refused[KRAFT_METADATA_TOPIC] = _reserved()
    wanted = []
    async for topic in slices.each(topics):
        if topic.name in refused:
            continue
        if may_create_topic(context, topic.name):
            wanted.append(topic)
        else:
            refused[topic.name] = _not_authorized()
    context.broker.topics.check_total(_partition_count(context, topic) for topic in wanted)
    planned: dict[str, NewTopic] = {}
    async for topic in slices.each(wanted):
        try:
            planned[topic.name] = _new_topic(context, topic)
        except ApiError as error:
            refused[topic.name] = detached(error)
    return planned, refused


def _repeated(name: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, f"The request contains topic '{name}' more than once."
    )


def _not_authorized() -> ApiError:
    return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def _reserved() -> ApiError:
    return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"'{KRAFT_METADATA_TOPIC}' is reserved.")


def _partition_count(context: Context, topic: Wanted) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return partitions_or_default(context.broker.config, topic.num_partitions)


def _new_topic(context: Context, topic: Wanted) -> NewTopic:
    configs = _checked_configs(context, topic)
    if topic.assignments:
        return NewTopic(topic.name, assignment=_manual_assignment(topic), configs=configs)
    factor = replication_factor_or_default(context.broker.config, topic.replication_factor)
    return NewTopic(topic.name, _partition_count(context, topic), factor, configs=configs)


def _manual_assignment(topic: Wanted) -> dict[int, tuple[int, ...]]:
    if topic.num_partitions != BROKER_DEFAULT or topic.replication_factor != BROKER_DEFAULT:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "A topic with an assignment cannot have a number of partitions or a replication "
            "factor too: both must be -1.",
        )
    assignment = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if len(assignment) != len(topic.assignments):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The assignment names a partition twice."
        )
    return assignment


def _checked_configs(context: Context, topic: Wanted) -> dict[str, str]:
    if len(topic.configs) > MOST_VALUES:
        raise ApiError(ErrorCode.INVALID_CONFIG, "There are not so many topic configs.")
    missing = sorted(config.name for config in topic.configs if config.value is None)
    if missing:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Null value not supported for topic configs: {','.join(missing)}",
        )
    configs = {config.name: config.value or "" for config in topic.configs}
    try:
        values = validate_topic_config(configs, context.broker.topic_configs.defaults)
        check_delivery(topic.name, values)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return configs


async def _wait_for_leaders(
    context: Context, created: Mapping[str, CreatedTopic], timeout_ms: int
) -> set[str]:
    cache = context.broker.metadata

    def is_shown(name: str) -> bool:
        known = cache.topic(name)
        return (
            known is not None
            and known.topic_id == created[name].topic_id
            and len(known.partitions) == len(created[name].assignment)
            and known.has_all_leaders
        )

    return await wait_for_topics(cache, created, is_shown, timeout_ms)


class _Descriptions:
    """Configurations as the answer shows them; topics with equal overrides share one."""

    def __init__(self, context: Context) -> None:
        self._is_wanted = context.api_version >= FIRST_VERSION_WITH_CONFIGS
        self._context = context
        self._layers = context.broker.broker_configs.layers
        self._made: dict[tuple[tuple[str, str], ...], list[Answer.Config]] = {}

    def of(self, topic: str, overrides: Mapping[str, str]) -> list[Answer.Config] | None:
        """Every key of a topic that overrides some; empty below version 5.

        None if the client may not describe it.
        """
        if not self._is_wanted:
            return []
        if not would_be_allowed_on_topic(self._context, AclOperation.DESCRIBE_CONFIGS, topic):
            return None
        key = tuple(sorted(overrides.items()))
        made = self._made.get(key)
        if made is None:
            entries = describe_topic(overrides, self._layers)
            made = self._made[key] = [_described(entry) for entry in entries]
        return made


def _described(entry: ConfigEntry) -> Answer.Config:
    return Answer.Config(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
    )


def _success(name: str, result: CreatedTopic, configs: list[Answer.Config] | None) -> Answer:
    if configs is None:
        return Answer(
            name=name,
            topic_id=result.topic_id,
            error_code=ErrorCode.NONE,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )
    return Answer(
        name=name,
        topic_id=result.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=len(result.assignment),
        replication_factor=result.replication_factor,
        configs=configs,
    )


def _refusal(name: str, error: ApiError) -> Answer:
    return Answer(name=name, error_code=error.code, error_message=error.message, configs=[])
