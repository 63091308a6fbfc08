"""Creating, growing and deleting topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class CreateTopicsRequest(Request, key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """Create topics, with counts or with an assignment by hand."""

    class Topic(Struct):
        """One of the `topics`."""

        class Assignment(Struct):
            """One of the `assignments`."""

            partition_index: int = int32()
            broker_ids: list[int] = array(int32)

        class Config(Struct):
            """One of the `configs`."""

            name: str = string()
            value: str | None = string(nullable="0+")

        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[Assignment] = array(Assignment)
        configs: list[Config] = array(Config)

    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+", default=False)


class CreateTopicsResponse(Response, request=CreateTopicsRequest, versions="0-7", flexible="5+"):
    """Answer to CreateTopicsRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Config(Struct):
            """One of the `configs`."""

            name: str = string()
            value: str | None = string(nullable="0+")
            read_only: bool = boolean()
            config_source: int = int8(default=-1)
            is_sensitive: bool = boolean()

        name: str = string()
        topic_id: UUID = uuid("7+", default=ZERO_UUID)
        error_code: int = int16()
        error_message: str | None = string("1+", default="", nullable="0+")
        topic_config_error_code: int = int16("5+", default=0, tag=0)
        num_partitions: int = int32("5+", default=-1)
        replication_factor: int = int16("5+", default=-1)
        configs: list[Config] | None = array(Config, "5+", default=(), nullable="0+")

    throttle_time_ms: int = int32("2+", default=0)
    topics: list[Topic] = array(Topic)


class CreatePartitionsRequest(Request, key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"):
    """Let topics grow by partitions."""

    class Topic(Struct):
        """One of the `topics`."""

        class Assignment(Struct):
            """One of the `assignments`."""

            broker_ids: list[int] = array(int32)

        name: str = string()
        count: int = int32()
        assignments: list[Assignment] | None = array(Assignment, nullable="0+")

    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


class CreatePartitionsResponse(
    Response, request=CreatePartitionsRequest, versions="0-3", flexible="2+"
):
    """Answer to CreatePartitionsRequest."""

    class Result(Struct):
        """One of the `results`."""

        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class DeleteTopicsRequest(Request, key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """Delete topics by name or id."""

    class Topic(Struct):
        """One of the `topics`."""

        name: str | None = string(default=None, nullable="0+")
        topic_id: UUID = uuid()

    topics: list[Topic] = array(Topic, "6+", default=())
    topic_names: list[str] = array(string, "0-5", default=())
    timeout_ms: int = int32()


class DeleteTopicsResponse(Response, request=DeleteTopicsRequest, versions="0-6", flexible="4+"):
    """Answer to DeleteTopicsRequest."""

    class Response(Struct):
        """One of the `responses`."""

        name: str | None = string(nullable="6+")
        topic_id: UUID = uuid("6+", default=ZERO_UUID)
        error_code: int = int16()
        error_message: str | None = string("5+", default=None, nullable="0+")

    throttle_time_ms: int = int32("1+", default=0)
    responses: list[Response] = array(Response)
