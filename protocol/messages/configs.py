"""Describing and altering configurations."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeConfigsRequest(Request, key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """Read the configuration of topics, brokers, groups or client metrics."""

    class Resource(Struct):
        """One of the `resources`."""

        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(string, nullable="0+")

    resources: list[Resource] = array(Resource)
    include_synonyms: bool = boolean("1+", default=False)
    include_documentation: bool = boolean("3+", default=False)


class DescribeConfigsResponse(
    Response, request=DescribeConfigsRequest, versions="0-4", flexible="4+"
):
    """Answer to DescribeConfigsRequest."""

    class Result(Struct):
        """One of the `results`."""

        class Config(Struct):
            """One of the `configs`."""

            class Synonym(Struct):
                """One of the `synonyms`."""

                name: str = string()
                value: str | None = string(nullable="0+")
                source: int = int8()

            name: str = string()
            value: str | None = string(nullable="0+")
            read_only: bool = boolean()
            is_default: bool = boolean("0", default=False)
            config_source: int = int8("1+", default=-1)
            is_sensitive: bool = boolean()
            synonyms: list[Synonym] = array(Synonym, "1+", default=())
            config_type: int = int8("3+", default=0)
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
        """One of the `resources`."""

        class Config(Struct):
            """One of the `configs`."""

            name: str = string()
            value: str | None = string(nullable="0+")

        resource_type: int = int8()
        resource_name: str = string()
        configs: list[Config] = array(Config)

    resources: list[Resource] = array(Resource)
    validate_only: bool = boolean()


class AlterConfigsResponse(Response, request=AlterConfigsRequest, versions="0-2", flexible="2+"):
    """Answer to AlterConfigsRequest."""

    class Response(Struct):
        """One of the `responses`."""

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32(default=0)
    responses: list[Response] = array(Response)


class IncrementalAlterConfigsRequest(
    Request, key=ApiKey.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    """Set, delete, append to or subtract from single configuration values."""

    class Resource(Struct):
        """One of the `resources`."""

        class Config(Struct):
            """One of the `configs`."""

            name: str = string()
            config_operation: int = int8()
            value: str | None = string(nullable="0+")

        resource_type: int = int8()
        resource_name: str = string()
        configs: list[Config] = array(Config)

    resources: list[Resource] = array(Resource)
    validate_only: bool = boolean()


class IncrementalAlterConfigsResponse(
    Response, request=IncrementalAlterConfigsRequest, versions="0-1", flexible="1+"
):
    """Answer to IncrementalAlterConfigsRequest."""

    class Response(Struct):
        """One of the `responses`."""

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32(default=0)
    responses: list[Response] = array(Response)


class ListConfigResourcesRequest(
    Request, key=ApiKey.LIST_CONFIG_RESOURCES, versions="0-1", flexible="0+"
):
    """List the resources that have configurations (before v1: client metrics only)."""

    resource_types: list[int] = array(int8, "1+", default=())


class ListConfigResourcesResponse(
    Response, request=ListConfigResourcesRequest, versions="0-1", flexible="0+"
):
    """Answer to ListConfigResourcesRequest."""

    class ConfigResource(Struct):
        """One of the `config_resources`."""

        resource_name: str = string()
        resource_type: int = int8("1+", default=16)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
