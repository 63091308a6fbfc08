"""SaslHandshake and SaslAuthenticate of clients that are not to authenticate.

Those that are never reach a handler: their frames go to the listener's gate
(`broker.network.authentication`). Left are clients of a listener without SASL, and those that are
authenticated and have no need to be again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from protocol.errors import ErrorCode
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context


@handles(SaslHandshakeRequest, versions="0-1")
def sasl_handshake(context: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:  # noqa: ARG001
    """Refuse, and name no mechanisms, as Apache Kafka does."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])


@handles(SaslAuthenticateRequest, versions="0-2")
def sasl_authenticate(
    context: Context,  # noqa: ARG001
    request: SaslAuthenticateRequest,  # noqa: ARG001
) -> SaslAuthenticateResponse:
    """Refuse, with Kafka's words."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
    )
