"""Error codes for clients when an append fails; classic groups have different ones."""

from __future__ import annotations

from protocol.errors import ErrorCode

COORDINATOR_MOVED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
NOT_COMMITTED = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
)
TOO_LARGE = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)


def storage_error(code: ErrorCode) -> ErrorCode:
    """Return the error for a client whose record was not stored; NONE stays NONE."""
    if code in NOT_COMMITTED:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in COORDINATOR_MOVED:
        return ErrorCode.NOT_COORDINATOR
    if code in TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return code


def reading_error(code: ErrorCode) -> ErrorCode:
    """Return the error for a read of data not committed in time; NONE stays NONE.

    Apache Kafka's coordinator does not wait then, and older consumers fail on all other errors.
    """
    if code is ErrorCode.NONE or code in COORDINATOR_MOVED:
        return storage_error(code)
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
