"""The state of share groups, kept by share coordinators for the leaders of partitions (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string, uuid
from protocol.messages.share_state_records import StoredBatch
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class ShareStateOutcome(Struct):
    """Results for one topic: the response to initialisations, writes and deletions."""

    class Partition(Struct):
        """Result for one share-partition."""

        partition: int = int32()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    topic_id: UUID = uuid()
    partitions: list[Partition] = array(Partition)


class ShareStateQuestion(Struct):
    """Share-partitions of one topic to read."""

    class Partition(Struct):
        """One share-partition, and its leader epoch."""

        partition: int = int32()
        leader_epoch: int = int32()

    topic_id: UUID = uuid()
    partitions: list[Partition] = array(Partition)


class InitializeShareGroupStateRequest(
    Request, key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Initialise the state of share-partitions, replacing any earlier one."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """Start offset of a share-partition."""

            partition: int = int32()
            state_epoch: int = int32()
            start_offset: int = int64()
            """-1 leaves it to the partition's leader."""

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class InitializeShareGroupStateResponse(
    Response, request=InitializeShareGroupStateRequest, versions="0", flexible="0+"
):
    """Answer to InitializeShareGroupStateRequest."""

    results: list[ShareStateOutcome] = array(ShareStateOutcome)


class ReadShareGroupStateRequest(
    Request, key=ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Read the state of share-partitions, to serve them from now on."""

    group_id: str = string()
    topics: list[ShareStateQuestion] = array(ShareStateQuestion)


class ReadShareGroupStateResponse(
    Response, request=ReadShareGroupStateRequest, versions="0", flexible="0+"
):
    """Answer to ReadShareGroupStateRequest."""

    class Result(Struct):
        """States of the share-partitions of one topic."""

        class Partition(Struct):
            """The state of one share-partition."""

            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            state_epoch: int = int32()
            start_offset: int = int64()
            """-1 if nothing was consumed yet."""
            state_batches: list[StoredBatch] = array(StoredBatch)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    results: list[Result] = array(Result)


class WriteShareGroupStateRequest(
    Request, key=ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+"
):
    """Store changes of share-partitions."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """Changes of one share-partition."""

            partition: int = int32()
            state_epoch: int = int32()
            leader_epoch: int = int32()
            start_offset: int = int64()
            """-1 if it stays."""
            delivery_complete_count: int = int32("1+", default=-1)
            """Records from the start offset on that will not be delivered again (KIP-1226)."""
            state_batches: list[StoredBatch] = array(StoredBatch)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class WriteShareGroupStateResponse(
    Response, request=WriteShareGroupStateRequest, versions="0-1", flexible="0+"
):
    """Answer to WriteShareGroupStateRequest."""

    results: list[ShareStateOutcome] = array(ShareStateOutcome)


class DeleteShareGroupStateRequest(
    Request, key=ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Forget the state of share-partitions."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """One share-partition."""

            partition: int = int32()

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class DeleteShareGroupStateResponse(
    Response, request=DeleteShareGroupStateRequest, versions="0", flexible="0+"
):
    """Answer to DeleteShareGroupStateRequest."""

    results: list[ShareStateOutcome] = array(ShareStateOutcome)


class ReadShareGroupStateSummaryRequest(
    Request, key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+"
):
    """Read start offset and progress of share-partitions, for descriptions."""

    group_id: str = string()
    topics: list[ShareStateQuestion] = array(ShareStateQuestion)


class ReadShareGroupStateSummaryResponse(
    Response, request=ReadShareGroupStateSummaryRequest, versions="0-1", flexible="0+"
):
    """Answer to ReadShareGroupStateSummaryRequest."""

    class Result(Struct):
        """Summaries of the share-partitions of one topic."""

        class Partition(Struct):
            """Start offset and progress of one share-partition."""

            partition: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            state_epoch: int = int32()
            leader_epoch: int = int32()
            start_offset: int = int64()
            delivery_complete_count: int = int32("1+", default=-1)

        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    results: list[Result] = array(Result)
