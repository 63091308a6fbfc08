"""AlterConfigs and IncrementalAlterConfigs: changing configurations of topics, groups and brokers.

Versions 0 to 2 and 0 to 1. AlterConfigs replaces all values of a resource; IncrementalAlterConfigs
sets, deletes, appends and subtracts single values. Errors are per resource, and naming a resource
twice is one. A broker changes its own configuration, and the defaults of all brokers (no name);
IncrementalAlterConfigs also changes the levels of its loggers.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.handlers.brokers import broker_loggers, client_metrics
from broker.handlers.brokers.alter_broker_configs import BrokerAlteration
from broker.handlers.brokers.config_resources import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    no_configuration,
    require_access,
)
from broker.handlers.topics.delivery_settings import check_delivery
from broker.metadata.group_configs import GROUP_ENTITY, group_entity
from broker.metadata.metadata_watch import repeated_among
from broker.requests.api_table import handles
from broker.requests.background_answer import answer_later
from broker.requests.store_errors import of_store_error
from broker.telemetry import subscriptions
from broker.telemetry.subscription import KEYS
from config.alteration import (
    AlterationError,
    Operation,
    alter_incrementally,
    validate_topic_config,
)
from config.catalogue import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS
from config.errors import ConfigError
from config.groups.limits import validate_group_config
from controller.brokers.dynamic_configs import read_config
from controller.metadata_store.store import StoreError
from controller.topics.topic_names import check_name
from controller.topics.topics import unknown_topic
from controller.znodes import TOPIC_ENTITY
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.handlers.brokers.alter_broker_configs import Change
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from controller.brokers.dynamic_configs import Alteration

_KEYS = {TOPIC: TOPIC_KEYS, BROKER: BROKER_KEYS, GROUP: GROUP_KEYS, CLIENT_METRICS: KEYS}
"""Configuration keys of each resource type."""

logger = logging.getLogger(__name__)

Replacement = AlterConfigsRequest.Resource
Increment = IncrementalAlterConfigsRequest.Resource


@handles(AlterConfigsRequest, versions="0-2")
def alter_configs(context: Context, request: AlterConfigsRequest) -> Deferred[AlterConfigsResponse]:
    """Replace the configurations of topics and brokers."""
    slices = context.broker.slices()

    def respond(resource: Replacement, error: ApiError | None) -> AlterConfigsResponse.Response:
        return AlterConfigsResponse.Response(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    async def work() -> AlterConfigsResponse:
        alteration = _Alteration(context, validate_only=request.validate_only)
        await alteration.note(request.resources)
        resources = slices.each(request.resources)
        return AlterConfigsResponse(
            responses=[respond(one, await alteration.replace(one)) async for one in resources]
        )

    async def refuse(error: ApiError) -> AlterConfigsResponse:
        resources = slices.each(request.resources)
        return AlterConfigsResponse(responses=[respond(one, error) async for one in resources])

    return answer_later(context, work(), refuse, "alter configs")


@handles(IncrementalAlterConfigsRequest, versions="0-1")
def incremental_alter_configs(
    context: Context, request: IncrementalAlterConfigsRequest
) -> Deferred[IncrementalAlterConfigsResponse]:
    """Change single values of configurations."""
    slices = context.broker.slices()

    def respond(
        resource: Increment, error: ApiError | None
    ) -> IncrementalAlterConfigsResponse.Response:
        return IncrementalAlterConfigsResponse.Response(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None if error is None else error.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )

    async def work() -> IncrementalAlterConfigsResponse:
        alteration = _Alteration(context, validate_only=request.validate_only)
        await alteration.note(request.resources)
        resources = slices.each(request.resources)
        return IncrementalAlterConfigsResponse(
            responses=[respond(one, await alteration.increment(one)) async for one in resources]
        )

    async def refuse(error: ApiError) -> IncrementalAlterConfigsResponse:
        resources = slices.each(request.resources)
        return IncrementalAlterConfigsResponse(
            responses=[respond(one, error) async for one in resources]
        )

    return answer_later(context, work(), refuse, "alter configs")


MOST_VALUES: Final = 5000
"""Of one resource: more are unknown or repeated, and would be looked at in one go."""


class _Alteration:
    """The alterations of one request, of either kind."""

    def __init__(self, context: Context, *, validate_only: bool) -> None:
        self._context = context
        self._slices = context.broker.slices()
        self._validate_only = validate_only
        self._doubles: set[tuple[int, str]] = set()

    async def note(self, resources: Iterable[Replacement | Increment]) -> None:
        """Note which of the resources are named twice."""
        keys = ((resource.resource_type, resource.resource_name) for resource in resources)
        self._doubles = await repeated_among(keys, self._slices)

    async def replace(self, resource: Replacement) -> ApiError | None:
        """Give a resource exactly the values of the request. Raises ApiError INVALID_REQUEST."""
        try:
            self._check(resource)
            configs = self._slices.each(resource.configs)
            values = {config.name: config.value async for config in configs}
            if len(values) != len(resource.configs):
                raise ApiError(ErrorCode.INVALID_REQUEST, "The request names a key twice.")
            missing = sorted(name for name, value in values.items() if value is None)
            if missing:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Null value not supported for : {','.join(missing)}",
                )
            texts = {name: value or "" for name, value in values.items()}
            await self._apply(resource, texts, lambda stored, _: stored)
        except ApiError as error:
            return error
        return None

    async def increment(self, resource: Increment) -> ApiError | None:
        """Apply the request's operations to the values of a resource."""
        try:
            if resource.resource_type == BROKER_LOGGER:
                self._alter_loggers(resource)
                return None
            self._check(resource)
            changes = [
                (c.name, _operation(c.config_operation), c.value)
                async for c in self._slices.each(resource.configs)
            ]
            table = _KEYS[resource.resource_type]
            texts = {name: text for name, _, text in changes if text is not None}

            def change(stored: Mapping[str, str], current: Mapping[str, str]) -> dict[str, str]:
                news = [(name, operation, stored.get(name)) for name, operation, _ in changes]
                return alter_incrementally(current, news, table)

            await self._apply(resource, texts, change)
        except ApiError as error:
            return error
        return None

    def _alter_loggers(self, resource: Increment) -> None:
        self._check_once(resource)
        self._require_access(BROKER_LOGGER, resource.resource_name)
        broker_loggers.alter(
            self._context.broker,
            resource.resource_name,
            resource.configs,
            validate_only=self._validate_only,
        )

    def _check_once(self, resource: Replacement | Increment) -> None:
        if len(resource.configs) > MOST_VALUES:
            raise ApiError(ErrorCode.INVALID_REQUEST, "No resource has so many keys.")
        if (resource.resource_type, resource.resource_name) in self._doubles:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The request names this resource twice.")

    def _check(self, resource: Replacement | Increment) -> None:
        self._check_once(resource)
        if resource.resource_type not in _KEYS:
            self._require_access(resource.resource_type, resource.resource_name)
            raise no_configuration(resource.resource_type)

    def _require_access(self, resource_type: int, name: str) -> None:
        require_access(self._context, AclOperation.ALTER_CONFIGS, resource_type, name)

    async def _apply(
        self, resource: Replacement | Increment, texts: Mapping[str, str], change: Change
    ) -> None:
        broker, name = self._context.broker, resource.resource_name
        try:
            if resource.resource_type == TOPIC:
                await self._alter_topic(name, partial(change, texts))
            elif resource.resource_type == GROUP:
                await self._alter_group(name, partial(change, texts))
            elif resource.resource_type == CLIENT_METRICS:
                await self._alter_client_metrics(name, partial(change, texts))
            else:
                alteration = BrokerAlteration(broker, name, texts, change)
                self._require_access(BROKER, name)
                await alteration.apply(validate_only=self._validate_only)
        except AlterationError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error
        except StoreError as error:
            raise of_store_error(error) from error

    async def _alter_topic(self, topic: str, change: Alteration) -> None:
        broker = self._context.broker
        self._require_access(TOPIC, topic)
        check_name(topic)
        self._require(topic)

        def alter(before: Mapping[str, str]) -> Mapping[str, str]:
            self._require(topic)  # deleted, perhaps, while it was read
            altered = change(before)
            values = validate_topic_config(altered, broker.topic_configs.defaults)
            check_delivery(topic, values)
            return altered

        await self._store(TOPIC_ENTITY, topic, alter)

    async def _alter_group(self, group_id: str, change: Alteration) -> None:
        broker = self._context.broker
        self._require_access(GROUP, group_id)
        if not group_id:
            reason = "Default group resources are not allowed."
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)
        if broker.is_in_cluster and not broker.features.levels:
            reason = "Groups have no configuration while brokers of Apache Kafka 3.9 may join."
            raise ApiError(ErrorCode.INVALID_REQUEST, reason)

        def alter(before: Mapping[str, str]) -> Mapping[str, str]:
            altered = change(before)
            validate_group_config(altered, broker.config)
            return altered

        if not self._validate_only:
            await broker.group_configs.prepare()
        await self._store(GROUP_ENTITY, group_entity(group_id), alter)

    async def _alter_client_metrics(self, name: str, change: Alteration) -> None:
        self._require_access(CLIENT_METRICS, name)
        alter = client_metrics.checked(self._context.broker, name, change)
        if not self._validate_only:
            await self._context.broker.client_metrics.prepare()
        await self._store(subscriptions.ENTITY, subscriptions.entity_of(name), alter)

    def _require(self, topic: str) -> None:
        if self._context.broker.metadata.topic(topic) is None:
            raise unknown_topic(topic)

    async def _store(self, entity_type: str, entity: str, alter: Alteration) -> None:
        broker = self._context.broker
        if self._validate_only:
            alter(await read_config(broker.store, entity_type, entity))
            return
        await broker.topic_configs.dynamic.alter(entity_type, entity, alter)
        try:
            await broker.topic_configs.dynamic.refresh()
        except StoreError as error:
            logger.warning("change of %s %s is stored, not applied: %s", entity_type, entity, error)


def _operation(code: int) -> Operation:
    try:
        return Operation(code)
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"There is no operation {code}.") from error
