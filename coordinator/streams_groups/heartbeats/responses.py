"""Answers to StreamsGroupHeartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.storage_errors import storage_error
from protocol.errors import ApiError, ErrorCode
from protocol.messages.streams_groups import StreamsGroupHeartbeatResponse, StreamsGroupTaskIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.streams_groups.tasks import OwnedTasks
    from coordinator.streams_groups.topology import InternalTopic, StatusCode

Response = StreamsGroupHeartbeatResponse


class Outcome(NamedTuple):
    """Result of a heartbeat."""

    response: Response
    missing: Mapping[str, InternalTopic]
    """Topics that the broker is to create, if the client may."""


def answer(member_id: str, member_epoch: int, interval_ms: int) -> Response:
    """An answer without an assignment."""
    return Response(
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=interval_ms,
        task_offset_interval_ms=0,
        status=[],
        endpoint_information_epoch=0,
    )


def error_response(error: ApiError) -> Response:
    """A refused heartbeat."""
    response = answer("", 0, 0)
    response.error_code, response.error_message = error.code, error.message
    return response


def refused(error: ApiError) -> Outcome:
    """A refused heartbeat."""
    return Outcome(error_response(error), {})


def refuse(error: ErrorCode) -> Outcome:
    """The outcome when the records of a heartbeat could not be stored."""
    return refused(ApiError(storage_error(error)))


def note_status(response: Response, code: StatusCode, detail: str) -> None:
    """Tell of something that is the matter with the group."""
    assert response.status is not None
    response.status.append(Response.Status(status_code=code, status_detail=detail))


def tell_assignment(response: Response, owned: OwnedTasks) -> None:
    """Put a member's current tasks into its response."""
    response.active_tasks = _told(owned.active)
    response.standby_tasks = _told(owned.standby)
    response.warmup_tasks = _told(owned.warmup)


def _told(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupTaskIds]:
    return [
        StreamsGroupTaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks)
    ]
