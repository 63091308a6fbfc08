"""DescribeClientQuotas and AlterClientQuotas: quotas of users, client ids and addresses.

Versions 0 and 1 of both (KIP-546). Every broker describes its effective quotas, and alters. Errors
of an alteration are per entity: one is changed as a whole or not at all.

Source: org.apache.kafka.image.ClientQuotasImage, ClientQuotaControlManager; they report more errors
than the ones for ZooKeeper, and refuse settings that those would store without effect.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from broker.quotas.quota_keys import ADDRESS_KEYS, CLIENT_KEYS, LARGEST, QuotaKey
from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster
from broker.requests.background_answer import answer_later
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.store_errors import of_store_error
from broker.runtime.addresses.host_names import address_of
from controller.metadata_store.store import StoreError
from controller.security.config_entities import DEFAULT, ConfigEntity, Default, Name
from controller.znodes import MalformedZnodeError
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred

Entry = AlterClientQuotasRequest.Entry
Altered = AlterClientQuotasResponse.Entry
Described = DescribeClientQuotasResponse.Entry
Component = DescribeClientQuotasRequest.Component

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
EXACT, OF_DEFAULT, ANY = 0, 1, 2
EPSILON = 1e-6
"""Tolerance within which a value counts as a whole number."""

Filter = dict[str, Name | None]
"""Required value of a part of an entity, by type; None matches anything."""
Parts = dict[str, str | None]
"""An entity as requests and answers have it: by type, a name or None for the default."""


MOST_PARTS = 100
"""Entities and keys of an entry that are looked at, which is done in one go."""


@handles(DescribeClientQuotasRequest, versions="0-1")
def describe_client_quotas(
    context: Context, request: DescribeClientQuotasRequest
) -> Deferred[DescribeClientQuotasResponse]:
    """Describe the quotas of the entities that match."""

    async def work() -> DescribeClientQuotasResponse:
        require_on_cluster(context, AclOperation.DESCRIBE_CONFIGS)
        wanted = filter_of(request.components)
        found = list(context.broker.quotas.entities.items())
        entries = [
            _described(parts_of(entity), limits)
            async for entity, limits in context.broker.slices().each(found)
            if matches(parts_of(entity), wanted, is_strict=request.strict)
        ]
        response = DescribeClientQuotasResponse(
            error_code=ErrorCode.NONE, error_message="", entries=entries
        )
        return await encoded_in_slices(context, response)

    def refuse(error: ApiError) -> DescribeClientQuotasResponse:
        message = error.message or error.code.meaning
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=message, entries=None
        )

    return answer_later(context, work(), refuse, "describe client quotas")


@handles(AlterClientQuotasRequest, versions="0-1")
def alter_client_quotas(
    context: Context, request: AlterClientQuotasRequest
) -> Deferred[AlterClientQuotasResponse]:
    """Set and remove quotas; they hold at this broker when it answers, soon at others."""
    slices = context.broker.slices()

    async def work() -> AlterClientQuotasResponse:
        require_on_cluster(context, AclOperation.ALTER_CONFIGS)
        results: dict[frozenset[tuple[str, str | None]], Altered] = {}
        async for entry in slices.each(request.entries):
            parts = _parts(entry)
            key = frozenset(parts.items())
            error = _repeated(parts) if key in results else _excess(entry)
            if error is None:
                error = await _alter(context, parts, entry, validate_only=request.validate_only)
            results[key] = _altered(parts, error)
        return AlterClientQuotasResponse(entries=list(results.values()))

    async def refuse(error: ApiError) -> AlterClientQuotasResponse:
        return AlterClientQuotasResponse(
            entries=[_altered(_parts(e), error) async for e in slices.each(request.entries)]
        )

    return answer_later(context, work(), refuse, "alter client quotas")


def _parts(entry: AlterClientQuotasRequest.Entry) -> dict[str, str | None]:
    """The entity of an entry, names by types."""
    return {part.entity_type: part.entity_name for part in entry.entity[:MOST_PARTS]}


# Filters


def filter_of(components: Iterable[Component]) -> Filter:
    """Filter of a request. Raises ApiError."""
    wanted: Filter = {}
    for component in components:
        kind = component.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in wanted:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        wanted[kind] = _wanted_name(component)
    if IP in wanted and len(wanted) > 1:
        raise _invalid("An ip cannot be looked for together with a user or client-id.")
    return wanted


def _wanted_name(component: Component) -> Name | None:
    if component.match_type not in (EXACT, OF_DEFAULT, ANY):
        raise _invalid(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT:
        if component.match is None:
            raise _invalid("An exact match needs a name.")
        return component.match
    if component.match is not None:
        raise _invalid(f"Match type {component.match_type} goes without a name.")
    return DEFAULT if component.match_type == OF_DEFAULT else None


def matches(parts: Parts, wanted: Filter, *, is_strict: bool) -> bool:
    """Return whether an entity matches; with `is_strict` it may have no part that was not named."""
    if is_strict and len(parts) != len(wanted):
        return False
    return all(
        kind in parts and (name is None or parts[kind] == (None if name is DEFAULT else name))
        for kind, name in wanted.items()
    )


# Alterations


async def _alter(
    context: Context, parts: Parts, entry: Entry, *, validate_only: bool
) -> ApiError | None:
    try:
        changes = _changes(entry)
        entity = entity_of(parts)
        await _check_address(entity.ip)
        values = _texts(ADDRESS_KEYS if IP in parts else CLIENT_KEYS, changes)
    except ApiError as error:
        return error

    def change(before: Mapping[str, str]) -> Mapping[str, str]:
        after = {key: text for key, text in before.items() if key not in changes}
        return after | values

    try:
        if not validate_only:
            await context.broker.user_configs.alter(entity, change)
    except StoreError as error:
        return of_store_error(error)
    except MalformedZnodeError as error:
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return None


def _excess(entry: Entry) -> ApiError | None:
    """Refuse entries with more parts than the three types of entities and four keys allow."""
    if max(len(entry.entity), len(entry.ops)) <= MOST_PARTS:
        return None
    return _invalid("An entry has too many types of entities or keys.")


def _changes(entry: Entry) -> dict[str, float | None]:
    """New values by key; None removes one."""
    changes: dict[str, float | None] = {}
    for operation in entry.ops:
        if operation.key in changes:
            raise _invalid(f"Duplicate quota key {operation.key}")
        changes[operation.key] = None if operation.remove else operation.value
    return changes


def entity_of(parts: Parts) -> ConfigEntity:
    """The entity that a request names. Raises ApiError."""
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in parts.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if IP in parts and len(parts) > 1:
        raise _invalid("An ip cannot be combined with a user or client-id.")
    return ConfigEntity(
        **{
            field: DEFAULT if (name := parts[kind]) is None else name
            for kind, field in ((USER, "user"), (CLIENT_ID, "client_id"), (IP, "ip"))
            if kind in parts
        }
    )


async def _check_address(host: Name | None) -> None:
    if isinstance(host, str) and await address_of(host) is None:
        raise _invalid(f"{host} is not a valid IP or resolvable host.")


def _texts(keys: tuple[QuotaKey, ...], changes: Mapping[str, float | None]) -> dict[str, str]:
    """The values to store. Raises ApiError."""
    texts: dict[str, str] = {}
    for key, value in changes.items():
        if value is None:
            continue
        if key not in keys:
            raise _invalid(f"Invalid configuration key {key}")
        texts[key] = _text(QuotaKey(key), value)
    return texts


def _text(key: QuotaKey, value: float) -> str:
    if not isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if key not in LARGEST:
        return str(value)
    if not value <= LARGEST[key]:
        raise _invalid(f"Proposed value for {key} is too large.")
    if value % 1.0 > EPSILON:
        raise _invalid(f"{key} cannot be a fractional value.")
    return str(int(value))


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, reason)


def _repeated(parts: Parts) -> ApiError:
    shown = ", ".join(f"{kind}={name}" for kind, name in parts.items())
    return _invalid(f"Ignoring duplicate entity {shown}")


# Answers


def parts_of(entity: ConfigEntity) -> Parts:
    """An entity as answers show it."""
    named = ((USER, entity.user), (CLIENT_ID, entity.client_id), (IP, entity.ip))
    return {
        kind: None if isinstance(name, Default) else name
        for kind, name in named
        if name is not None
    }


def _described(parts: Parts, limits: Mapping[str, float]) -> Described:
    return Described(
        entity=[
            Described.Entity(entity_type=kind, entity_name=name) for kind, name in parts.items()
        ],
        values=[Described.Value(key=key, value=limit) for key, limit in limits.items()],
    )


def _altered(parts: Parts, error: ApiError | None) -> Altered:
    return Altered(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message or error.code.meaning,
        entity=[Altered.Entity(entity_type=kind, entity_name=name) for kind, name in parts.items()],
    )
