"""DescribeConfigs and ListConfigResources: values in effect, and where each was set.

DescribeConfigs versions 0 to 4; v0 shows only whether a value is the default. A null list of keys
asks for all; unknown keys are omitted. Identical entries of a request are answered once. Synonyms
are returned on request, and from v3 documentation. A broker describes topics, groups, itself, its
loggers and the defaults of all brokers; the configuration of a topic without a replica here is read
from the store first.

ListConfigResources versions 0 and 1 lists the resources: v0 only client metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.brokers import broker_loggers, client_metrics
from broker.handlers.brokers.config_resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    TYPES,
    no_configuration,
    require_access,
)
from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster, would_be_allowed_on_topic
from broker.requests.background_answer import answer_later
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.steps import in_steps
from config.describe import (
    ConfigEntry,
    describe_broker,
    describe_cluster_default,
    describe_group,
    describe_topic,
)
from controller.topics.topic_names import check_name
from controller.topics.topics import unknown_topic
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred

DESCRIBED_AT_ONCE = 4
"""Resources described before others are served."""

Wanted = DescribeConfigsRequest.Resource
Result = DescribeConfigsResponse.Result
Config = DescribeConfigsResponse.Result.Config
Listed = ListConfigResourcesResponse.ConfigResource


@handles(DescribeConfigsRequest, versions="0-4")
@in_steps
def describe_configs(
    context: Context, request: DescribeConfigsRequest
) -> Steps[DescribeConfigsResponse | Deferred[DescribeConfigsResponse]]:
    """Describe each resource; errors are per resource."""
    resources = yield from _distinct(request.resources)
    unread = set()
    for resource in resources:
        if _is_unread(context, resource):
            unread.add(resource.resource_name)
        yield
    if not unread and len(resources) <= DESCRIBED_AT_ONCE:
        description = _Description(context, request)
        results = [description.result(resource) for resource in resources]
        return DescribeConfigsResponse(results=results)

    async def work() -> DescribeConfigsResponse:
        await context.broker.topic_configs.dynamic.load_topics(unread)
        description = _Description(context, request)
        slices = context.broker.slices()
        results = [description.result(one) async for one in slices.each(resources)]
        return await encoded_in_slices(context, DescribeConfigsResponse(results=results))

    async def refuse(error: ApiError) -> DescribeConfigsResponse:
        slices = context.broker.slices()
        return DescribeConfigsResponse(
            results=[_refusal(one, error) async for one in slices.each(resources)]
        )

    return answer_later(context, work(), refuse, "describe configs")


def _is_unread(context: Context, resource: Wanted) -> bool:
    """Return whether the client may describe this topic, whose configuration is not read yet."""
    name = resource.resource_name
    return (
        resource.resource_type == TOPIC
        and would_be_allowed_on_topic(context, AclOperation.DESCRIBE_CONFIGS, name)
        and context.broker.metadata.topic(name) is not None
        and not context.broker.topic_configs.dynamic.knows_topic(name)
    )


def _distinct(resources: Iterable[Wanted]) -> Steps[list[Wanted]]:
    """Drop repetitions: a few bytes of a request must not cost an answer each."""
    found: dict[tuple[object, ...], Wanted] = {}
    for one in resources:
        keys = None if one.configuration_keys is None else tuple(one.configuration_keys)
        found.setdefault((one.resource_type, one.resource_name, keys), one)
        yield
    return list(found.values())


def _refusal(resource: Wanted, error: ApiError) -> Result:
    return Result(
        error_code=error.code,
        error_message=error.message or error.code.meaning,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


class _Description:
    """The descriptions of one request; those of resources with equal values are made once."""

    def __init__(self, context: Context, request: DescribeConfigsRequest) -> None:
        self._context = context
        self._broker = context.broker
        self._layers = context.broker.broker_configs.layers
        self._request = request
        self._made: dict[tuple[object, ...], list[Config]] = {}

    def result(self, resource: Wanted) -> Result:
        """One resource's part of the answer."""
        try:
            configs = self._configs(resource)
        except ApiError as error:
            return _refusal(resource, error)
        return Result(
            error_code=ErrorCode.NONE,
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    def _configs(self, resource: Wanted) -> list[Config]:
        keys = None
        if resource.configuration_keys is not None:  # each of ours is looked for among them
            keys = dict.fromkeys(resource.configuration_keys)
        is_topic = resource.resource_type == TOPIC
        name = resource.resource_name
        require_access(self._context, AclOperation.DESCRIBE_CONFIGS, resource.resource_type, name)
        is_group = resource.resource_type == GROUP
        settings = self._overrides(name) if is_topic else self._of_group(name) if is_group else {}
        alike = (
            *(resource.resource_type, "" if is_topic or is_group else name),
            *(tuple(sorted(settings.items())), None if keys is None else tuple(keys)),
        )
        made = self._made.get(alike)
        if made is None and resource.resource_type == BROKER_LOGGER:
            levels = broker_loggers.described(self._broker, name, keys)
            made = self._made[alike] = [_of_logger(*each) for each in levels.items()]
        if resource.resource_type == CLIENT_METRICS:
            asks = self._request.include_synonyms
            return client_metrics.described(self._broker, name, keys, with_synonyms=asks)
        if made is None:
            if is_topic:
                entries = describe_topic(settings, self._layers, keys)
            elif is_group:
                entries = describe_group(settings, self._layers, keys)
            else:
                entries = self._of_broker(resource, keys)
            made = self._made[alike] = [self._config(entry) for entry in entries]
        return made

    def _of_group(self, group_id: str) -> Mapping[str, str]:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return self._broker.group_configs.overrides(group_id)

    def _overrides(self, topic: str) -> Mapping[str, str]:
        check_name(topic)
        if self._broker.metadata.topic(topic) is None:
            raise unknown_topic(topic)
        return self._broker.topic_configs.overrides(topic)

    def _of_broker(self, resource: Wanted, keys: Collection[str] | None) -> list[ConfigEntry]:
        name = resource.resource_name
        if resource.resource_type != BROKER:
            raise no_configuration(resource.resource_type)
        if name == "":
            return describe_cluster_default(self._layers, keys)
        broker_id = self._broker.config.broker_id
        if name != str(broker_id):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Broker {broker_id} describes itself and the cluster's default, "
                f"not broker '{name}'.",
            )
        return describe_broker(self._layers, keys)

    def _config(self, entry: ConfigEntry) -> Config:
        synonyms = entry.synonyms if self._request.include_synonyms else ()
        return Config(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            is_default=entry.is_default,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=[
                Config.Synonym(name=synonym.name, value=synonym.text, source=synonym.source)
                for synonym in synonyms
            ],
            config_type=entry.type_code,
            documentation=entry.documentation if self._request.include_documentation else None,
        )


def _of_logger(name: str, level: str) -> Config:
    return Config(
        name=name,
        value=level,
        read_only=False,
        config_source=broker_loggers.SOURCE,
        is_sensitive=False,
        synonyms=[],
        documentation=None,
    )


@handles(ListConfigResourcesRequest, versions="0-1")
@in_steps
def list_config_resources(
    context: Context, request: ListConfigResourcesRequest
) -> Steps[ListConfigResourcesResponse]:
    """List groups with a configuration, client metrics, topics, brokers and their loggers.

    Of the types that the request names, or of all. Raises ApiError CLUSTER_AUTHORIZATION_FAILED.
    """
    require_on_cluster(context, AclOperation.DESCRIBE_CONFIGS)
    subscriptions = [
        Listed(resource_name=name, resource_type=CLIENT_METRICS)
        for name in context.broker.client_metrics.names
    ]
    if context.api_version == 0:
        return ListConfigResourcesResponse(
            error_code=ErrorCode.NONE, config_resources=subscriptions
        )
    wanted = set(request.resource_types) or TYPES
    if not wanted <= TYPES:
        return ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[]
        )
    cache = context.broker.metadata
    resources = subscriptions if CLIENT_METRICS in wanted else []
    if GROUP in wanted:
        groups = context.broker.group_configs.group_ids
        yield from _listed(groups, GROUP, resources)
    if TOPIC in wanted:
        yield from _listed(list(cache.topics), TOPIC, resources)
    for kind in (BROKER_LOGGER, BROKER):
        if kind in wanted:
            yield from _listed([str(b) for b in cache.brokers], kind, resources)
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=resources)


def _listed(names: Iterable[str], kind: int, resources: list[Listed]) -> Steps[None]:
    for name in names:
        resources.append(Listed(resource_name=name, resource_type=kind))
        yield
