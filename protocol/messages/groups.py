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
        """A classic group."""

        class Member(Struct):
            """A member and its assignment."""

            member_id: str = string()
            group_instance_id: str | None = string("4+", default=None, nullable="0+")
            client_id: str = string()
            client_host: str = string()
            """Address that it joined from, with a slash in front."""
            member_metadata: bytes = blob()
            """Metadata that it joined with, for the chosen strategy."""
            member_assignment: bytes = blob()

        error_code: int = int16()
        """GROUP_ID_NOT_FOUND since v6; before, an unknown group is Dead and has no error."""
        error_message: str | None = string("6+", default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        """Empty, PreparingRebalance, CompletingRebalance, Stable or Dead."""
        protocol_type: str = string()
        protocol_data: str = string()
        """Name of the assignment strategy; empty unless the group is stable."""
        members: list[Member] = array(Member)
        authorized_operations: int = int32("3+", default=-2147483648)
        """Bits of the AclOperation codes; the least int32 if not asked for."""

    throttle_time_ms: int = int32("1+", default=0)
    groups: list[Group] = array(Group)


class ListGroupsRequest(Request, key=ApiKey.LIST_GROUPS, versions="0-5", flexible="3+"):
    """List the groups that a broker coordinates."""

    states_filter: list[str] = array(string, "4+", default=())
    """Any case; none lists groups of all states (KIP-518)."""
    types_filter: list[str] = array(string, "5+", default=())
    """"classic", "consumer" and so on, any case; none lists all (KIP-848)."""


class ListGroupsResponse(Response, request=ListGroupsRequest, versions="0-5", flexible="3+"):
    """Answer to ListGroupsRequest."""

    class Group(Struct):
        """A group."""

        group_id: str = string()
        protocol_type: str = string()
        """Empty for a group that only stores offsets."""
        group_state: str = string("4+", default="")
        group_type: str = string("5+", default="")

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    groups: list[Group] = array(Group)


class DeleteGroupsRequest(Request, key=ApiKey.DELETE_GROUPS, versions="0-3", flexible="2+"):
    """Delete empty groups with their offsets."""

    groups_names: list[str] = array(string)


class DeleteGroupsResponse(Response, request=DeleteGroupsRequest, versions="0-3", flexible="2+"):
    """Answer to DeleteGroupsRequest."""

    class Result(Struct):
        """Result for one group."""

        group_id: str = string()
        error_code: int = int16()
        """NON_EMPTY_GROUP if it has members."""
        error_message: str | None = string("3+", default=None, nullable="3+")

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)
