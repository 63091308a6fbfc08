"""`--add-scram`: a user's SCRAM credential as a cluster begins with it (KIP-900).

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]

No error repeats a password.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from controller.bootstrap.errors import BootstrapError
from protocol.metadata_log.security_records import UserScramCredentialRecord
from protocol.scram_types import (
    BY_NAME,
    MAX_ITERATIONS,
    ScramMechanism,
    credential_from,
    salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SALT_BYTES: Final = 16
"""Length of a drawn salt."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_QUANTUM: Final = 4
"""Characters of base64 that stand for three bytes."""
_FIELDS: Final = frozenset({"name", "salt", "iterations", "password", "saltedpassword"})


def credential_record(
    argument: str, random_bytes: Callable[[int], bytes]
) -> UserScramCredentialRecord:
    """The record of a credential, with a drawn salt if none is given. Raises BootstrapError."""
    mechanism, fields = _parse(argument)
    if "name" not in fields:
        raise BootstrapError("--add-scram: name is missing")
    iterations = _iterations(mechanism, fields.get("iterations"))
    salt = _decoded("salt", fields["salt"]) if "salt" in fields else None
    if "password" in fields:
        salt = random_bytes(SALT_BYTES) if salt is None else salt
        password = _not_empty("password", fields["password"].encode())
        salted = salted_password(mechanism, password, salt, iterations)
    elif "saltedpassword" not in fields:
        raise BootstrapError("--add-scram: password or saltedpassword is missing")
    elif salt is None:
        raise BootstrapError("--add-scram: salt is missing, which saltedpassword was made with")
    else:
        salted = _not_empty("saltedpassword", _decoded("saltedpassword", fields["saltedpassword"]))
    credential = credential_from(mechanism, salted, salt, iterations)
    return UserScramCredentialRecord(
        name=fields["name"],
        mechanism=mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _parse(argument: str) -> tuple[ScramMechanism, dict[str, str]]:
    name, _, text = argument.strip().partition("=")
    mechanism = BY_NAME.get(name)
    if mechanism is None:
        known = ", ".join(BY_NAME)
        raise BootstrapError(f"--add-scram: '{name}' is not a mechanism; there are: {known}")
    if not (text.startswith("[") and text.endswith("]")):
        raise BootstrapError("--add-scram: the credential is not in brackets, as [name=alice,…]")
    fields = dict(_field(part) for part in text[1:-1].rstrip(",").split(","))
    unknown = sorted(fields.keys() - _FIELDS)
    if unknown:
        raise BootstrapError(f"--add-scram: unknown: {', '.join(unknown)}")
    return mechanism, fields


def _field(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise BootstrapError("--add-scram: a part of the credential is not written name=value")
    is_quoted = len(value) > 1 and value.startswith('"') and value.endswith('"')
    return name, value[1:-1] if is_quoted else value


def _iterations(mechanism: ScramMechanism, text: str | None) -> int:
    if text is None:
        return mechanism.min_iterations
    if not _NUMBER.fullmatch(text) or not mechanism.min_iterations <= int(text) <= MAX_ITERATIONS:
        bounds = f"{mechanism.min_iterations} to {MAX_ITERATIONS}"
        raise BootstrapError(f"--add-scram: iterations must be {bounds}, not '{text}'")
    return int(text)


def _decoded(name: str, text: str) -> bytes:
    """Bytes in base64, of which Java takes unpadded ones as well."""
    missing = 0 if text.endswith("=") else -len(text) % _QUANTUM
    try:
        if _BASE64.fullmatch(text):
            return base64.b64decode(text + "=" * missing)
    except binascii.Error:
        pass
    raise BootstrapError(f"--add-scram: {name} is not base64")


def _not_empty(name: str, value: bytes) -> bytes:
    if not value:
        raise BootstrapError(f"--add-scram: {name} is empty")
    return value
