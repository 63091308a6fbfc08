"""DescribeConfigs and ListConfigResources: what is configured, and where it came from.

DescribeConfigs versions 0 to 4; v0 knows only whether a value is the default. A null list of keys
asks for all; unknown keys are left out. Synonyms come on request, and from v3 documentation. A
broker describes topics, itself and what is set for all brokers; the configuration of a topic of
which it has no replica it reads first. ListConfigResources versions 0 and 1 lists what has
configurations: v0 knows only client metrics, of which there are none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.answering import answer_later
from broker.handlers.config_resources import BROKER, CLIENT_METRICS, GROUP, TOPIC
from broker.routing import handles
from config.describe import ConfigEntry, describe_broker, describe_cluster_default, describe_topic
from controller.topic_names import check_name
from controller.topics import unknown_topic
from protocol.errors import ApiError, ErrorCode
from protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker.context import Context
    from broker.deferred import Deferred

Wanted = DescribeConfigsRequest.Resource
Result = DescribeConfigsResponse.Result
Config = DescribeConfigsResponse.Result.Config
Listed = ListConfigResourcesResponse.ConfigResource


@handles(DescribeConfigsRequest, versions="0-4")
def describe_configs(
    context: Context, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | Deferred[DescribeConfigsResponse]:
    """Describe each resource; errors are per resource."""
    unread = {
        resource.resource_name
        for resource in request.resources
        if resource.resource_type == TOPIC
        and context.broker.metadata.topic(resource.resource_name) is not None
        and not context.broker.topic_configs.dynamic.knows_topic(resource.resource_name)
    }
    if not unread:
        return _describe_all(context, request)

    async def work() -> DescribeConfigsResponse:
        await context.broker.topic_configs.dynamic.load_topics(unread)
        return _describe_all(context, request)

    def refuse(error: ApiError) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[_refusal(resource, error) for resource in request.resources]
        )

    return answer_later(context, work(), refuse, "describe configs")


def _describe_all(context: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_describe(context, resource, request) for resource in request.resources]
    )


def _refusal(resource: Wanted, error: ApiError) -> Result:
    return Result(
        error_code=error.code,
        error_message=error.message or error.code.meaning,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _describe(context: Context, resource: Wanted, request: DescribeConfigsRequest) -> Result:
    result = Result(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )
    try:
        entries = _entries(context, resource)
    except ApiError as error:
        result.error_code = error.code
        result.error_message = error.message
    else:
        result.configs = [
            _config(
                entry,
                with_synonyms=request.include_synonyms,
                with_documentation=request.include_documentation,
            )
            for entry in entries
        ]
    return result


def _entries(context: Context, resource: Wanted) -> list[ConfigEntry]:
    broker = context.broker
    name, keys = resource.resource_name, resource.configuration_keys
    layers = broker.broker_configs.layers
    if resource.resource_type == TOPIC:
        check_name(name)
        if broker.metadata.topic(name) is None:
            raise unknown_topic(name)
        return describe_topic(broker.topic_configs.overrides(name), layers, keys)
    if resource.resource_type == BROKER:
        if name == "":
            return describe_cluster_default(layers, keys)
        if name != str(broker.config.broker_id):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Broker {broker.config.broker_id} describes itself and the cluster's default, "
                f"not broker '{name}'.",
            )
        return describe_broker(layers, keys)
    raise ApiError(
        ErrorCode.INVALID_REQUEST,
        f"Resources of type {resource.resource_type} have no configuration here.",
    )


def _config(entry: ConfigEntry, *, with_synonyms: bool, with_documentation: bool) -> Config:
    return Config(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        is_default=entry.is_default,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            Config.Synonym(name=synonym.name, value=synonym.text, source=synonym.source)
            for synonym in (entry.synonyms if with_synonyms else ())
        ],
        config_type=entry.type_code,
        documentation=entry.documentation if with_documentation else None,
    )


@handles(ListConfigResourcesRequest, versions="0-1")
def list_config_resources(
    context: Context, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List topics and brokers, as far as they were asked for."""
    if context.api_version == 0:
        return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=[])
    served = {TOPIC, BROKER, GROUP, CLIENT_METRICS}
    wanted = set(request.resource_types) or served
    if not wanted <= served:
        return ListConfigResourcesResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[]
        )
    cache = context.broker.metadata
    resources = []
    if TOPIC in wanted:
        resources += [Listed(resource_name=name, resource_type=TOPIC) for name in cache.topics]
    if BROKER in wanted:
        resources += [Listed(resource_name=str(b), resource_type=BROKER) for b in cache.brokers]
    return ListConfigResourcesResponse(error_code=ErrorCode.NONE, config_resources=resources)
