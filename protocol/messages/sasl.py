"""SASL authentication."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, int16, int64, string
from protocol.schema import Request, Response


class SaslHandshakeRequest(Request, key=ApiKey.SASL_HANDSHAKE, versions="0-1", flexible="none"):
    """Choose a SASL mechanism.

    After v0, tokens follow as bare frames without any header; after v1, in SaslAuthenticate.
    """

    mechanism: str = string()


class SaslHandshakeResponse(
    Response, request=SaslHandshakeRequest, versions="0-1", flexible="none"
):
    """Answer to SaslHandshakeRequest."""

    error_code: int = int16()
    """UNSUPPORTED_SASL_MECHANISM: choose from `mechanisms`."""
    mechanisms: list[str] = array(string)


class SaslAuthenticateRequest(Request, key=ApiKey.SASL_AUTHENTICATE, versions="0-2", flexible="2+"):
    """Carry one token of a SASL exchange."""

    auth_bytes: bytes = blob()


class SaslAuthenticateResponse(
    Response, request=SaslAuthenticateRequest, versions="0-2", flexible="2+"
):
    """Answer to SaslAuthenticateRequest."""

    error_code: int = int16()
    error_message: str | None = string(default="", nullable="0+")
    auth_bytes: bytes = blob()
    session_lifetime_ms: int = int64("1+", default=0)
    """Time within which to authenticate again (KIP-368); 0 for no limit."""
