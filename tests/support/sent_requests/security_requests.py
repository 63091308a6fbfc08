"""Requests about access itself: access control lists, users, delegation tokens, quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.acl_types import WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
)
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from protocol.messages.scram import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

NO_TOKEN = b"no token has this"
NOBODY = "User:nobody"
SCRAM_SHA_256 = 1


def describe_acls(about: About, version: int) -> DescribeAclsRequest:
    """Describe all ACLs; in the other form those that match the first topic."""
    matches = version > 0 and about.is_form(1)
    return DescribeAclsRequest(
        resource_type_filter=ResourceType.TOPIC if matches else ResourceType.ANY,
        resource_name_filter=about.topics[0] if matches else None,
        pattern_type_filter=PatternType.MATCH if matches else PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=PermissionType.ANY,
    )


def create_acls(about: About, _: int) -> CreateAclsRequest:
    """Create an ACL for each topic, of a user that does not exist."""
    return CreateAclsRequest(
        creations=[
            CreateAclsRequest.Creation(
                resource_type=ResourceType.TOPIC,
                resource_name=name,
                resource_pattern_type=PatternType.LITERAL,
                principal=NOBODY,
                host=WILDCARD,
                operation=AclOperation.READ,
                permission_type=PermissionType.ALLOW,
            )
            for name in about.topics
        ]
    )


def delete_acls(about: About, _: int) -> DeleteAclsRequest:
    """Delete the ACLs that `create_acls` makes of the first topic."""
    wanted = DeleteAclsRequest.Filter(
        resource_type_filter=ResourceType.TOPIC,
        resource_name_filter=about.topics[0],
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=NOBODY,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=PermissionType.ANY,
    )
    return DeleteAclsRequest(filters=[wanted])


def describe_user_scram_credentials(_: About, __: int) -> DescribeUserScramCredentialsRequest:
    """Describe an unknown user. For all, Apache answers nothing to a client without rights."""
    kind = DescribeUserScramCredentialsRequest.User
    return DescribeUserScramCredentialsRequest(users=[kind(name="nobody")])


def alter_user_scram_credentials(_: About, __: int) -> AlterUserScramCredentialsRequest:
    """Delete what is not there."""
    gone = AlterUserScramCredentialsRequest.Deletion(name="nobody", mechanism=SCRAM_SHA_256)
    return AlterUserScramCredentialsRequest(deletions=[gone], upsertions=[])


def describe_delegation_token(_: About, __: int) -> DescribeDelegationTokenRequest:
    """Describe all tokens."""
    return DescribeDelegationTokenRequest(owners=None)


def create_delegation_token(_: About, __: int) -> CreateDelegationTokenRequest:
    """For the client itself."""
    return CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=60_000)


def renew_delegation_token(_: About, __: int) -> RenewDelegationTokenRequest:
    """Renew a nonexistent token."""
    return RenewDelegationTokenRequest(hmac=NO_TOKEN, renew_period_ms=60_000)


def expire_delegation_token(_: About, __: int) -> ExpireDelegationTokenRequest:
    """Expire a nonexistent token."""
    return ExpireDelegationTokenRequest(hmac=NO_TOKEN, expiry_time_period_ms=60_000)


def describe_client_quotas(_: About, __: int) -> DescribeClientQuotasRequest:
    """Describe all quotas."""
    return DescribeClientQuotasRequest(components=[], strict=False)


def alter_client_quotas(_: About, __: int) -> AlterClientQuotasRequest:
    """Validate a quota for a user that does not exist."""
    kind = AlterClientQuotasRequest.Entry
    wanted = kind(
        entity=[kind.Entity(entity_type="user", entity_name="nobody")],
        ops=[kind.Op(key="producer_byte_rate", value=1e9, remove=False)],
    )
    return AlterClientQuotasRequest(entries=[wanted], validate_only=True)


def sasl_handshake(_: About, __: int) -> SaslHandshakeRequest:
    """Begin a handshake although the client is authenticated."""
    return SaslHandshakeRequest(mechanism="PLAIN")


def sasl_authenticate(_: About, __: int) -> SaslAuthenticateRequest:
    """Authenticate although the client is authenticated."""
    return SaslAuthenticateRequest(auth_bytes=b"\0nobody\0nobody")


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.DESCRIBE_ACLS: describe_acls,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: describe_delegation_token,
    ApiKey.CREATE_DELEGATION_TOKEN: create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: renew_delegation_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: expire_delegation_token,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas,
    ApiKey.SASL_HANDSHAKE: sasl_handshake,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate,
}
