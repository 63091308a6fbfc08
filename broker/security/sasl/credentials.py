"""The ports of what SCRAM clients are known by: passwords of users, and delegation tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from protocol.scram_types import ScramCredential, ScramMechanism


class CredentialSource(Protocol):
    """The users' credentials, in memory."""

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """The user's, as it is now; None if there is none for that mechanism."""


@dataclass(frozen=True, slots=True, repr=False)
class TokenCredential:
    """A delegation token, as it is needed to log in with it."""

    owner: str
    """Principal of whose the token is, such as `User:alice`."""
    credential: ScramCredential
    expires_at_ms: int


class TokenSource(Protocol):
    """The delegation tokens, in memory."""

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenCredential | None:
        """The token of that id; None if it does not exist, or no longer."""


class NoCredentials:
    """Before users and tokens are loaded."""

    def credential(self, mechanism: ScramMechanism, user: str) -> None:
        """None: there are no users."""

    def token(self, mechanism: ScramMechanism, token_id: str) -> None:
        """None: there are no tokens."""


_NONE = NoCredentials()


@dataclass(slots=True)
class Credentials:
    """Of whom the listeners ask; set once the metadata can be read, before anyone is served."""

    users: CredentialSource = _NONE
    tokens: TokenSource = _NONE
