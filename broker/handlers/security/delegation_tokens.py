"""Delegation tokens: Create, Renew, Expire and DescribeDelegationToken (KIP-48, KIP-373).

Versions 0 to 3, 0 to 2, 0 to 2 and 0 to 3; from v3 a token may be for another owner than the
requester. Refused on PLAINTEXT listeners, to TLS clients without a certificate, and to clients
authenticated by a token: a token cannot create a token. Without `delegation.token.secret.key` all
others get DELEGATION_TOKEN_AUTH_DISABLED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.network.client import ANONYMOUS
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed
from broker.requests.background_answer import answer_later
from broker.requests.steps import in_steps
from broker.security.principal import TokenPrincipal
from config.listeners.endpoints import bound_endpoints
from controller.security.delegation_tokens import TokenRequest
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from controller.security.delegation_token_znodes import DelegationToken
    from controller.security.delegation_tokens import DelegationTokens

USER_TYPE = "User"
"""The only type of principal that may renew tokens."""
NEVER = -1
"""Stands for a time in the answer to a refused request."""


@handles(CreateDelegationTokenRequest, versions="0-3")
def create_delegation_token(
    context: Context, request: CreateDelegationTokenRequest
) -> Deferred[CreateDelegationTokenResponse]:
    """Make a token for the client, or for another owner if the client may."""
    requester = str(context.principal)
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"

    def refuse(error: ApiError) -> CreateDelegationTokenResponse:
        return _created(owner, requester, error.code)

    async def work() -> CreateDelegationTokenResponse:
        _require_may_ask(context)
        _require_may_create(context, owner, requester)
        if any(renewer.principal_type != USER_TYPE for renewer in request.renewers):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        tokens = _tokens(context)
        wanted = TokenRequest(
            owner=owner,
            requester=requester,
            renewers=tuple(f"{r.principal_type}:{r.principal_name}" for r in request.renewers),
            max_lifetime_ms=request.max_lifetime_ms,
        )
        token = await tokens.create(wanted, context.now_ms)
        return _created(owner, requester, ErrorCode.NONE, token, tokens.hmac_of(token.token_id))

    return answer_later(context, work(), refuse, "create delegation token")


@handles(RenewDelegationTokenRequest, versions="0-2")
def renew_delegation_token(
    context: Context, request: RenewDelegationTokenRequest
) -> Deferred[RenewDelegationTokenResponse]:
    """Prolong a token, which its owner and its renewers may."""
    secret = bytes(request.hmac)

    def respond(code: ErrorCode, expiry_ms: int) -> RenewDelegationTokenResponse:
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)

    async def work() -> RenewDelegationTokenResponse:
        _require_may_ask(context)
        renewal = _tokens(context).renew(
            context.principal, secret, request.renew_period_ms, context.now_ms
        )
        return respond(ErrorCode.NONE, await renewal)

    return answer_later(
        context, work(), lambda error: respond(error.code, NEVER), "renew delegation token"
    )


@handles(ExpireDelegationTokenRequest, versions="0-2")
def expire_delegation_token(
    context: Context, request: ExpireDelegationTokenRequest
) -> Deferred[ExpireDelegationTokenResponse]:
    """Have a token end sooner, or at once, which its owner and its renewers may."""
    secret = bytes(request.hmac)

    def respond(code: ErrorCode, expiry_ms: int) -> ExpireDelegationTokenResponse:
        return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expiry_ms)

    async def work() -> ExpireDelegationTokenResponse:
        _require_may_ask(context)
        expiry = _tokens(context).expire(
            context.principal, secret, request.expiry_time_period_ms, context.now_ms
        )
        return respond(ErrorCode.NONE, await expiry)

    return answer_later(
        context, work(), lambda error: respond(error.code, NEVER), "expire delegation token"
    )


@handles(DescribeDelegationTokenRequest, versions="0-3")
@in_steps
def describe_delegation_token(
    context: Context, request: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    """List tokens with their secrets: the client's own, and others' that it may describe."""
    try:
        _require_may_ask(context)
        tokens = _tokens(context)
    except ApiError as error:
        return DescribeDelegationTokenResponse(error_code=error.code, tokens=[])
    owners = None
    if request.owners is not None:
        owners = set()
        for owner in request.owners:
            owners.add(f"{owner.principal_type}:{owner.principal_name}")
            yield
    response = DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=[])
    for token in list(tokens.all()):
        if _is_asked_for(token, owners) and _may_describe(context, token):
            response.tokens.append(_described(token, tokens.hmac_of(token.token_id)))
        yield
    return response


def _require_may_ask(context: Context) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED unless a credential identifies the client."""
    protocols = {end.name: end.protocol for end in bound_endpoints(context.broker.config)}
    protocol = protocols.get(context.listener, "PLAINTEXT")
    is_nobody = protocol == "SSL" and context.principal == ANONYMOUS
    if protocol == "PLAINTEXT" or is_nobody or isinstance(context.principal, TokenPrincipal):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _require_may_create(context: Context, owner: str, requester: str) -> None:
    if owner != requester and not is_allowed(
        context, AclOperation.CREATE_TOKENS, ResourceType.USER, owner
    ):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def _tokens(context: Context) -> DelegationTokens:
    tokens = context.broker.delegation_tokens
    if tokens is None:
        raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    return tokens


def _is_asked_for(token: DelegationToken, owners: set[str] | None) -> bool:
    return owners is None or not owners.isdisjoint(token.concerned)


def _may_describe(context: Context, token: DelegationToken) -> bool:
    describe = (AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
    describe_tokens = (AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    return (
        token.concerns(context.principal)
        or is_allowed(context, *describe)
        or is_allowed(context, *describe_tokens)
    )


def _created(
    owner: str,
    requester: str,
    code: ErrorCode,
    token: DelegationToken | None = None,
    secret: bytes = b"",
) -> CreateDelegationTokenResponse:
    owner_type, owner_name = _parts_of(owner)
    requester_type, requester_name = _parts_of(requester)
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=NEVER if token is None else token.issue_ms,
        expiry_timestamp_ms=NEVER if token is None else token.expiry_ms,
        max_timestamp_ms=NEVER if token is None else token.max_ms,
        token_id="" if token is None else token.token_id,
        hmac=secret,
    )


def _described(token: DelegationToken, secret: bytes) -> DescribeDelegationTokenResponse.Token:
    owner_type, owner_name = _parts_of(token.owner)
    requester_type, requester_name = _parts_of(token.requester)
    renewer = DescribeDelegationTokenResponse.Token.Renewer
    return DescribeDelegationTokenResponse.Token(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=secret,
        renewers=[
            renewer(principal_type=kind, principal_name=name)
            for kind, name in map(_parts_of, token.renewers)
        ],
    )


def _parts_of(principal: str) -> tuple[str, str]:
    """Type and name."""
    kind, _, name = principal.partition(":")
    return kind, name
