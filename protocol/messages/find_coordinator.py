"""Coordinators of groups, transactions and share-partitions."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class FindCoordinatorRequest(Request, key=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    """Ask which broker coordinates a group, a transactional id or a share partition."""

    key: str = string("0-3", default="")
    key_type: int = int8("1+", default=0)
    """0 group, 1 transactional id, 2 share partition ("group:topic id:partition")."""
    coordinator_keys: list[str] = array(string, "4+", default=())
    """Several keys of the same type (KIP-699)."""


class FindCoordinatorResponse(
    Response, request=FindCoordinatorRequest, versions="0-6", flexible="3+"
):
    """Answer to FindCoordinatorRequest; before v4 for the one key."""

    class Coordinator(Struct):
        """Coordinator of one key."""

        key: str = string()
        node_id: int = int32()
        """-1 with an error."""
        host: str = string()
        port: int = int32()
        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16("0-3", default=0)
    """COORDINATOR_NOT_AVAILABLE until the internal topic is there and has leaders."""
    error_message: str | None = string("1-3", default="", nullable="0+")
    node_id: int = int32("0-3", default=0)
    """-1 with an error."""
    host: str = string("0-3", default="")
    port: int = int32("0-3", default=0)
    coordinators: list[Coordinator] = array(Coordinator, "4+", default=())
