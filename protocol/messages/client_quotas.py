"""Quotas (KIP-546)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, float64, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeClientQuotasRequest(
    Request, key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """List quotas that match a filter."""

    class Component(Struct):
        """A condition on one part of the entity."""

        entity_type: str = string()
        """"user", "client-id" or "ip"."""
        match_type: int = int8()
        """0 this name, 1 the default, 2 any name."""
        match: str | None = string(nullable="0+")
        """Null unless `match_type` is 0."""

    components: list[Component] = array(Component)
    strict: bool = boolean()
    """Only quotas of exactly these components, and no more."""


class DescribeClientQuotasResponse(
    Response, request=DescribeClientQuotasRequest, versions="0-1", flexible="1+"
):
    """Answer to DescribeClientQuotasRequest."""

    class Entry(Struct):
        """An entity and its quotas."""

        class Entity(Struct):
            """A part of the entity: a user, client id or address."""

            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")
            """Null for the default."""

        class Value(Struct):
            """A quota, for instance `producer_byte_rate`."""

            key: str = string()
            value: float = float64()

        entity: list[Entity] = array(Entity)
        values: list[Value] = array(Value)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    entries: list[Entry] | None = array(Entry, nullable="0+")


class AlterClientQuotasRequest(
    Request, key=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """Set or remove quotas of users, client ids and addresses."""

    class Entry(Struct):
        """An entity and the changes to its quotas."""

        class Entity(Struct):
            """A part of the entity: a user, client id or address."""

            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")
            """Null for the default."""

        class Op(Struct):
            """A quota to set or to remove."""

            key: str = string()
            value: float = float64()
            remove: bool = boolean()

        entity: list[Entity] = array(Entity)
        ops: list[Op] = array(Op)

    entries: list[Entry] = array(Entry)
    validate_only: bool = boolean()


class AlterClientQuotasResponse(
    Response, request=AlterClientQuotasRequest, versions="0-1", flexible="1+"
):
    """Answer to AlterClientQuotasRequest."""

    class Entry(Struct):
        """Result for one entity."""

        class Entity(Struct):
            """A part of the entity."""

            entity_type: str = string()
            entity_name: str | None = string(nullable="0+")

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        entity: list[Entity] = array(Entity)

    throttle_time_ms: int = int32(default=0)
    entries: list[Entry] = array(Entry)
