"""Access control lists."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, string
from protocol.schema import Request, Response, Struct


class DescribeAclsRequest(Request, key=ApiKey.DESCRIBE_ACLS, versions="0-3", flexible="2+"):
    """List access rules that match a filter."""

    resource_type_filter: int = int8()
    """1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user."""
    resource_name_filter: str | None = string(nullable="0+")
    """Null matches any."""
    pattern_type_filter: int = int8("1+", default=3)
    """1 any, 2 match, 3 literal, 4 prefixed (KIP-290)."""
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    """1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe and on."""
    permission_type: int = int8()
    """1 any, 2 deny, 3 allow."""


class DescribeAclsResponse(Response, request=DescribeAclsRequest, versions="0-3", flexible="2+"):
    """Answer to DescribeAclsRequest."""

    class Resource(Struct):
        """A resource and its rules."""

        class Acl(Struct):
            """A rule."""

            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8("1+", default=3)
        acls: list[Acl] = array(Acl)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    resources: list[Resource] = array(Resource)


class CreateAclsRequest(Request, key=ApiKey.CREATE_ACLS, versions="0-3", flexible="2+"):
    """Add access rules."""

    class Creation(Struct):
        """A rule to add."""

        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8("1+", default=3)
        """3 literal, 4 prefixed (KIP-290)."""
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    creations: list[Creation] = array(Creation)


class CreateAclsResponse(Response, request=CreateAclsRequest, versions="0-3", flexible="2+"):
    """Answer to CreateAclsRequest."""

    class Result(Struct):
        """Result for one rule."""

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")

    throttle_time_ms: int = int32(default=0)
    results: list[Result] = array(Result)


class DeleteAclsRequest(Request, key=ApiKey.DELETE_ACLS, versions="0-3", flexible="2+"):
    """Delete the access rules that match filters."""

    class Filter(Struct):
        """Pattern of the rules to delete."""

        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable="0+")
        pattern_type_filter: int = int8("1+", default=3)
        principal_filter: str | None = string(nullable="0+")
        host_filter: str | None = string(nullable="0+")
        operation: int = int8()
        permission_type: int = int8()

    filters: list[Filter] = array(Filter)


class DeleteAclsResponse(Response, request=DeleteAclsRequest, versions="0-3", flexible="2+"):
    """Answer to DeleteAclsRequest."""

    class FilterResult(Struct):
        """Rules that one filter deleted."""

        class MatchingAcl(Struct):
            """A rule that the filter matched."""

            error_code: int = int16()
            error_message: str | None = string(default="", nullable="0+")
            resource_type: int = int8()
            resource_name: str = string()
            pattern_type: int = int8("1+", default=3)
            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        error_code: int = int16()
        error_message: str | None = string(default="", nullable="0+")
        matching_acls: list[MatchingAcl] = array(MatchingAcl)

    throttle_time_ms: int = int32(default=0)
    filter_results: list[FilterResult] = array(FilterResult)
