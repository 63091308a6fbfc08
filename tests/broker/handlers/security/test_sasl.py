"""SASL requests of clients that need not authenticate."""

from __future__ import annotations

import pytest

from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.broker.one_connection import OneConnection, joined


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_out_of_place_names_no_mechanisms(version: int) -> None:
    client = OneConnection()

    answer = client.send(
        ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism="PLAIN").encode(version)
    )

    expected = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    assert SaslHandshakeResponse.decode(version, joined(answer)) == expected


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_out_of_place_is_refused(version: int) -> None:
    client = OneConnection()
    tags = b"\0" if version == 2 else b""
    body = SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret").encode(version)

    answer = joined(client.send(ApiKey.SASL_AUTHENTICATE, version, tags + body))

    decoded = SaslAuthenticateResponse.decode(version, answer[len(tags) :])
    assert decoded.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert decoded.error_message == (
        "SaslAuthenticate request received after successful authentication"
    )
