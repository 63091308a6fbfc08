"""Describing and altering configurations."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeConfigsRequest(Request, key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """Read the configuration of topics, brokers, groups or client metrics."""

    class Resource(Struct):
        """One topic, broker, group or metrics subscription."""

        resource_type: int = int8()
        """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
        resource_name: str = string()
        """Brokers: the id as text, or empty for the cluster-wide defaults."""
        configuration_keys: list[str] | None = array(string, nullable="0+")
        """Names to list; null for all."""

    resources: list[Resource] = array(Resource)
    include_synonyms: bool = boolean("1+", default=False)
    include_documentation: bool = boolean("3+", default=False)


class DescribeConfigsResponse(
    Response, request=DescribeConfigsRequest, versions="0-4", flexible="4+"
):
    """Answer to DescribeConfigsRequest."""

    class Result(Struct):
        """The configuration of one resource."""

        class Config(Struct):
            """One configuration key."""

            class Synonym(Struct):
                """A key, or a place of it, that can set the same value."""

                name: str = string()
                value: str | None = string(nullable="0+")
                source: int = int8()

            name: str = string()
            value: str | None = string(nullable="0+")
            """Null if it is secret or has none."""
            read_only: bool = boolean()
            """True if it cannot be altered while the broker runs."""
            is_default: bool = boolean("0", default=False)
            config_source: int = int8("1+", default=-1)
            """1 topic, 2 this broker's dynamic, 3 all brokers' dynamic, 4 property file, 5 default,
            6 broker logger, 7 client metrics, 8 group.
            """
            is_sensitive: bool = boolean()
            """True if the value is a password or the like, and so never shown."""
            synonyms: list[Synonym] = array(Synonym, "1+", default=())
            """Whence else the value could have come, in order of precedence; only if asked for."""
            config_type: int = int8("3+", default=0)
            """1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
            """
            documentation: str | None = string("3+", default="", nullable="0+")

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[Config] = array(Config)

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class AlterConfigsRequest(Request, key=ApiKey.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    """Replace the whole configuration of resources."""

    class Resource(Struct):
        """A resource and all that it shall have."""

        class Config(Struct):
            """A value to set."""

            name: str = string()
            value: str | None = string(nullable="0+")

        resource_type: int = int8()
        resource_name: str = string()
        configs: list[Config] = array(Config)
        """Keys that are not here fall back to their defaults."""

    resources: list[Resource] = array(Resource)
    validate_only: bool = boolean()
    """Check, and change nothing."""


class AlterConfigsResponse(Response, request=AlterConfigsRequest, versions="0-2", flexible="2+"):
    """Answer to AlterConfigsRequest."""

    class Response(Struct):
        """Result for one resource."""

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32(default=0)
    responses: list[Response] = array(Response)


class IncrementalAlterConfigsRequest(
    Request, key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    """Set, delete, append to or subtract from single values (KIP-339)."""

    class Resource(Struct):
        """A resource and the changes to its configuration."""

        class Config(Struct):
            """A change of one key."""

            name: str = string()
            config_operation: int = int8()
            """0 set, 1 delete, 2 append to a list, 3 subtract from a list."""
            value: str | None = string(nullable="0+")
            """Null with delete."""

        resource_type: int = int8()
        resource_name: str = string()
        configs: list[Config] = array(Config)

    resources: list[Resource] = array(Resource)
    validate_only: bool = boolean()
    """Check, and change nothing."""


class IncrementalAlterConfigsResponse(
    Response, request=IncrementalAlterConfigsRequest, versions="0-1", flexible="1+"
):
    """Answer to IncrementalAlterConfigsRequest."""

    class Response(Struct):
        """Result for one resource."""

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32(default=0)
    responses: list[Response] = array(Response)


class ListConfigResourcesRequest(
    Request, key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"
):
    """List the resources that have configurations (v0: client metrics only)."""

    resource_types: list[int] = array(int8, "1+", default=())
    """As in DescribeConfigs; none asks for all."""


class ListConfigResourcesResponse(
    Response, request=ListConfigResourcesRequest, versions="0-1", flexible="0+"
):
    """Answer to ListConfigResourcesRequest."""

    class ConfigResource(Struct):
        """A resource that has a configuration."""

        resource_name: str = string()
        resource_type: int = int8("1+", default=16)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
