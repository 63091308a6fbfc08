"""A token that was found to be valid, and what makes one invalid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.runtime.deferred import Deferred

INVALID_TOKEN = "invalid_token"  # noqa: S105 - a status of RFC 6750
INSUFFICIENT_SCOPE = "insufficient_scope"


class InvalidTokenError(Exception):
    """An invalid token. The text is for the log, and holds no part of the token's signature.

    The client is sent the status alone, and the scope if that was missing.
    """

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = INVALID_TOKEN if scope is None else INSUFFICIENT_SCOPE
        self.scope = scope


@dataclass(frozen=True, slots=True, repr=False)
class BearerToken:
    """A valid token."""

    name: str
    """Of the user whose it is."""
    expires_at_ms: int
    scope: frozenset[str] = frozenset()


class TokenValidator(Protocol):
    """Decides whether a token is valid."""

    def validate(self, token: str, now_ms: int) -> BearerToken | Deferred[BearerToken]:
        """The token, taken apart. Raises InvalidTokenError, or a Deferred fails with it."""
