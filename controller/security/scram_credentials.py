"""SCRAM credentials as Apache Kafka keeps them: a text under the mechanism's name, by user.

    SCRAM-SHA-256  →  salt=<base64>,stored_key=<base64>,server_key=<base64>,iterations=4096

A text that cannot be read counts as none: its user cannot log in, and the reason is logged.
"""

from __future__ import annotations

import base64
import binascii
import logging
from typing import TYPE_CHECKING

from controller.security.config_entities import parse_entity
from protocol.scram_types import ScramCredential, ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIELDS = ("salt", "stored_key", "server_key", "iterations")
_INT_MAX = (1 << 31) - 1

logger = logging.getLogger(__name__)


class MalformedCredentialError(Exception):
    """A stored credential is unreadable. The text is not in the message."""


class ScramUsers:
    """The credentials of all users, in memory, as the store has them."""

    def __init__(self) -> None:
        """Start without users; `changed` adds them."""
        self._credentials: dict[str, dict[ScramMechanism, ScramCredential]] = {}

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """The user's current one; None if there is none for that mechanism."""
        return self._credentials.get(user, {}).get(mechanism)

    def credentials(self, user: str) -> Mapping[ScramMechanism, ScramCredential]:
        """All that a user has, by mechanism."""
        return self._credentials.get(user, {})

    @property
    def names(self) -> list[str]:
        """Users with credentials, sorted."""
        return sorted(self._credentials)

    async def changed(self, entity_type: str, entity: str, values: Mapping[str, str]) -> None:
        """Listen to `DynamicConfigs`: update the credentials of a user."""
        parsed = parse_entity(entity_type, entity)
        user = None if parsed is None or parsed.client_id is not None else parsed.user
        if not isinstance(user, str):
            return
        credentials = read_credentials(user, values)
        before = self._credentials.pop(user, {})
        if credentials:
            self._credentials[user] = credentials
        for mechanism in ScramMechanism:
            if credentials.get(mechanism) != before.get(mechanism):
                what = "set" if mechanism in credentials else "deleted"
                logger.info("%s credential of user %s %s", mechanism.mechanism_name, user, what)


def read_credentials(user: str, values: Mapping[str, str]) -> dict[ScramMechanism, ScramCredential]:
    """Return the readable credentials in a user's configuration."""
    found: dict[ScramMechanism, ScramCredential] = {}
    for mechanism in ScramMechanism:
        text = values.get(mechanism.mechanism_name)
        if text is not None:
            try:
                found[mechanism] = parse_credential(text)
            except MalformedCredentialError as error:
                logger.error(  # noqa: TRY400
                    "%s credential of user %s ignored: %s", mechanism.mechanism_name, user, error
                )
    return found


def format_credential(credential: ScramCredential) -> str:
    """Format a credential for storage."""
    parts = (credential.salt, credential.stored_key, credential.server_key)
    salt, stored_key, server_key = (base64.b64encode(part).decode() for part in parts)
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key},"
        f"iterations={credential.iterations}"
    )


def parse_credential(text: str) -> ScramCredential:
    """Read a stored credential, its fields in any order. Raises MalformedCredentialError."""
    pairs = [part.partition("=") for part in text.split(",")]
    fields = {name: value for name, _, value in pairs}
    if len(pairs) != len(_FIELDS) or sorted(fields) != sorted(_FIELDS):
        raise MalformedCredentialError(f"a credential has the fields {', '.join(_FIELDS)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
        )
        iterations = int(fields["iterations"])
    except (binascii.Error, ValueError):
        raise MalformedCredentialError("a field of the credential is unreadable") from None
    if not 1 <= iterations <= _INT_MAX or not stored_key or not server_key:
        raise MalformedCredentialError("the credential has no keys or no iterations")
    return ScramCredential(salt, stored_key, server_key, iterations)
