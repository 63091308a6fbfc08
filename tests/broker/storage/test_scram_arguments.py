"""`--add-scram`: what becomes of an argument, and what its refusals keep to themselves."""

from __future__ import annotations

import base64

import pytest

from broker.storage.scram_arguments import credential_record
from controller.bootstrap.errors import BootstrapError
from protocol.scram_types import ScramMechanism, credential_from, salted_password


def test_drawn_salt_is_used_for_the_keys() -> None:
    record = credential_record(
        "SCRAM-SHA-512=[name=alice,password=geheim\u00df]", lambda _: b"salt"
    )

    mechanism = ScramMechanism.SCRAM_SHA_512
    salted = salted_password(mechanism, "geheim\u00df".encode(), b"salt", 4096)
    credential = credential_from(mechanism, salted, b"salt", 4096)
    assert (record.name, record.mechanism) == ("alice", mechanism)
    assert (record.salt, record.iterations) == (b"salt", 4096)
    assert record.stored_key == credential.stored_key
    assert record.server_key == credential.server_key


def test_salted_password_gives_the_same_keys_as_the_password() -> None:
    salted = salted_password(ScramMechanism.SCRAM_SHA_256, b"secret", b"salt", 5000)
    rest = f"name=alice,iterations=5000,salt={base64.b64encode(b'salt').decode()}"

    records = [
        credential_record(f"SCRAM-SHA-256=[{rest},{how}]", lambda _: b"")
        for how in ("password=secret", f'saltedpassword="{base64.b64encode(salted).decode()}"')
    ]

    assert records[0] == records[1]


@pytest.mark.parametrize(
    "argument",
    [
        "SCRAM-SHA-256=[name=alice,hunter2]",
        "SCRAM-SHA-256=[name=alice,password=hunter2,iterations=1]",
        "SCRAM-SHA-256=[name=alice,salt=YQ==,saltedpassword=hunter2!]",
        "SCRAM-SHA-256=[name=alice,password=hunter2",
        "SCRAM-SHA-256=[password=hunter2]",
    ],
)
def test_refusal_does_not_repeat_a_password(argument: str) -> None:
    with pytest.raises(BootstrapError, match="--add-scram: ") as refused:
        credential_record(argument, lambda _: b"salt")
    assert "hunter2" not in str(refused.value)
