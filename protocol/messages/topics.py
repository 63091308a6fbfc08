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
        """A topic to create."""

        class Assignment(Struct):
            """Replicas of one partition."""

            partition_index: int = int32()
            broker_ids: list[int] = array(int32)
            """The first is the preferred leader."""

        class Config(Struct):
            """A configuration value of the topic."""

            name: str = string()
            value: str | None = string(nullable="0+")

        name: str = string()
        num_partitions: int = int32()
        """-1 for the broker's default (v4), or when `assignments` are given."""
        replication_factor: int = int16()
        """-1 for the broker's default (v4), or when `assignments` are given."""
        assignments: list[Assignment] = array(Assignment)
        """Replicas by hand; then both counts must be -1."""
        configs: list[Config] = array(Config)

    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32(default=60000)
    """Time to wait for the topics' creation; 0 or less does not wait."""
    validate_only: bool = boolean("1+", default=False)
    """Check, and change nothing."""


class CreateTopicsResponse(Response, request=CreateTopicsRequest, versions="0-7", flexible="5+"):
    """Answer to CreateTopicsRequest."""

    class Topic(Struct):
        """Result for one topic."""

        class Config(Struct):
            """A configuration value that the topic has."""

            name: str = string()
            value: str | None = string(nullable="0+")
            """Null if it is secret."""
            read_only: bool = boolean()
            config_source: int = int8(default=-1)
            """Source of the value, as in DescribeConfigs; -1 if not known."""
            is_sensitive: bool = boolean()

        name: str = string()
        topic_id: UUID = uuid("7+", default=ZERO_UUID)
        error_code: int = int16()
        error_message: str | None = string("1+", default="", nullable="0+")
        topic_config_error_code: int = int16("5+", default=0, tag=0)
        """TOPIC_AUTHORIZATION_FAILED when the client may not see the configuration."""
        num_partitions: int = int32("5+", default=-1)
        """-1 if the client may not see it (KIP-525)."""
        replication_factor: int = int16("5+", default=-1)
        """-1 if the client may not see it (KIP-525)."""
        configs: list[Config] | None = array(Config, "5+", default=(), nullable="0+")
        """All values that the topic has, defaults included (KIP-525)."""

    throttle_time_ms: int = int32("2+", default=0)
    topics: list[Topic] = array(Topic)


class CreatePartitionsRequest(Request, key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"):
    """Let topics grow by partitions."""

    class Topic(Struct):
        """A topic that shall grow."""

        class Assignment(Struct):
            """Replicas of one new partition."""

            broker_ids: list[int] = array(int32)

        name: str = string()
        count: int = int32()
        """New number of partitions in total, not the increase."""
        assignments: list[Assignment] | None = array(Assignment, nullable="0+")
        """Replicas of the new partitions; null lets the controller choose."""

    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()
    """Check, and change nothing."""


class CreatePartitionsResponse(
    Response, request=CreatePartitionsRequest, versions="0-3", flexible="2+"
):
    """Answer to CreatePartitionsRequest."""

    class Result(Struct):
        """Result for one topic."""

        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class DeleteTopicsRequest(Request, key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """Delete topics by name or id."""

    class Topic(Struct):
        """A topic, by its name or its id, not both (KIP-516)."""

        name: str | None = string(default=None, nullable="0+")
        """Null when the id is given."""
        topic_id: UUID = uuid()

    topics: list[Topic] = array(Topic, "6+", default=())
    topic_names: list[str] = array(string, "0-5", default=())
    timeout_ms: int = int32()
    """Time to wait for the topics' deletion; 0 or less does not wait."""


class DeleteTopicsResponse(Response, request=DeleteTopicsRequest, versions="0-6", flexible="4+"):
    """Answer to DeleteTopicsRequest."""

    class Response(Struct):
        """Result for one topic."""

        name: str | None = string(nullable="6+")
        """Null if the id is unknown, or its name not to be seen by the client."""
        topic_id: UUID = uuid("6+", default=ZERO_UUID)
        error_code: int = int16()
        error_message: str | None = string("5+", default=None, nullable="0+")

    throttle_time_ms: int = int32("1+", default=0)
    responses: list[Response] = array(Response)
