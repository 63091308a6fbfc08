"""Broker to controller: a client's request, forwarded (KIP-590)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import blob, int16
from protocol.schema import Request, Response


class EnvelopeRequest(Request, key=ApiKey.ENVELOPE, versions="0", flexible="0+"):
    """A broker forwards a client's request to the controller (KIP-590)."""

    request_data: bytes = blob()
    """Header and body of the client's request."""
    request_principal: bytes | None = blob(nullable="0+")
    """The client's principal, serialised."""
    client_host_address: bytes = blob()
    """The client's IP address, 4 or 16 bytes."""


class EnvelopeResponse(Response, request=EnvelopeRequest, versions="0", flexible="0+"):
    """Answer to EnvelopeRequest."""

    response_data: bytes | None = blob(default=None, nullable="0+")
    """Header and body of the answer; null if there was an error."""
    error_code: int = int16()
