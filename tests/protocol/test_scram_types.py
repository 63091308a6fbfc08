"""A password's stored credential, by the example in RFC 7677."""

from __future__ import annotations

import base64

from protocol.scram_types import BY_NAME, credential_from, salted_password


def test_a_credential_is_derived_as_the_rfc_says() -> None:
    mechanism = BY_NAME["SCRAM-SHA-256"]
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")

    salted = salted_password(mechanism, b"pencil", salt, 4096)
    credential = credential_from(mechanism, salted, salt, 4096)

    assert (
        base64.b64encode(credential.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    )
    assert (
        base64.b64encode(credential.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert "WG5d" not in repr(credential)
