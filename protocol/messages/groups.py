"""Listing, describing and deleting groups."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, boolean, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeGroupsRequest(Request, key=ApiKey.DESCRIBE_GROUPS, versions="0-6", flexible="5+"):
    """Describe classic groups and their members."""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+", default=False)


class DescribeGroupsResponse(
    Response, request=DescribeGroupsRequest, versions="0-6", flexible="5+"
):
    """Answer to DescribeGroupsRequest."""

    class Group(Struct):
        """One of the `groups`."""

        class Member(Struct):
            """One of the `members`."""

            member_id: str = string()
            group_instance_id: str | None = string("4+", default=None, nullable="0+")
            client_id: str = string()
            client_host: str = string()
            member_metadata: bytes = blob()
            member_assignment: bytes = blob()

        error_code: int = int16()
        error_message: str | None = string("6+", default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        protocol_type: str = string()
        protocol_data: str = string()
        members: list[Member] = array(Member)
        authorized_operations: int = int32("3+", default=-2147483648)

    throttle_time_ms: int = int32("1+", default=0)
    groups: list[Group] = array(Group)


class ListGroupsRequest(Request, key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """List the groups that a broker coordinates."""

    states_filter: list[str] = array(string, "4+", default=())
    types_filter: list[str] = array(string, "5+", default=())


class ListGroupsResponse(Response, request=ListGroupsRequest, versions="0-5", flexible="3+"):
    """Answer to ListGroupsRequest."""

    class Group(Struct):
        """One of the `groups`."""

        group_id: str = string()
        protocol_type: str = string()
        group_state: str = string("4+", default="")
        group_type: str = string("5+", default="")

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    groups: list[Group] = array(Group)


class DeleteGroupsRequest(Request, key=ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+"):
    """Delete empty groups with their offsets."""

    groups_names: list[str] = array(string)


class DeleteGroupsResponse(Response, request=DeleteGroupsRequest, versions="0-2", flexible="2+"):
    """Answer to DeleteGroupsRequest."""

    class Result(Struct):
        """One of the `results`."""

        group_id: str = string()
        error_code: int = int16()

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)
