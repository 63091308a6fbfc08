"""Authentication states of a connection and their transitions (SaslServerAuthenticator).

    INITIAL ──ApiVersions── HANDSHAKE ──SaslHandshake── TOKENS ──tokens── COMPLETE
       │ └───────────────SaslHandshake──────────────────┘ │
       └── a first token of GSSAPI, as Kafka 0.9 sent it ──┘

    COMPLETE ──SaslHandshake── TOKENS                     (authenticating again, KIP-368)
             ──another mechanism── MECHANISM_CHANGED      (refused at the next frame)

A transition not in the table ends the connection.
"""

from __future__ import annotations

from enum import Enum, auto

from protocol.api_keys import ApiKey


class State(Enum):
    """Of one authentication."""

    INITIAL = auto()
    VERSIONS_OR_HANDSHAKE = auto()
    """An unanswerable ApiVersions request came."""
    HANDSHAKE = auto()
    TOKENS = auto()
    COMPLETE = auto()
    AGAIN = auto()
    """The client is known, and begins to authenticate again."""
    MECHANISM_CHANGED = auto()
    FAILED = auto()


class Event(Enum):
    """Result of a client's frame."""

    VERSIONS_REFUSED = auto()
    VERSIONS_LISTED = auto()
    MECHANISM_CHOSEN = auto()
    ANOTHER_MECHANISM = auto()
    CHALLENGED = auto()
    AUTHENTICATED = auto()


TRANSITIONS = {
    (State.INITIAL, Event.VERSIONS_REFUSED): State.VERSIONS_OR_HANDSHAKE,
    (State.INITIAL, Event.VERSIONS_LISTED): State.HANDSHAKE,
    (State.INITIAL, Event.MECHANISM_CHOSEN): State.TOKENS,
    (State.VERSIONS_OR_HANDSHAKE, Event.VERSIONS_REFUSED): State.VERSIONS_OR_HANDSHAKE,
    (State.VERSIONS_OR_HANDSHAKE, Event.VERSIONS_LISTED): State.HANDSHAKE,
    (State.VERSIONS_OR_HANDSHAKE, Event.MECHANISM_CHOSEN): State.TOKENS,
    (State.HANDSHAKE, Event.MECHANISM_CHOSEN): State.TOKENS,
    (State.TOKENS, Event.CHALLENGED): State.TOKENS,
    (State.TOKENS, Event.AUTHENTICATED): State.COMPLETE,
    (State.AGAIN, Event.MECHANISM_CHOSEN): State.TOKENS,
    (State.AGAIN, Event.ANOTHER_MECHANISM): State.MECHANISM_CHANGED,
}

HANDSHAKE_REQUESTS = {
    State.INITIAL: {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    State.VERSIONS_OR_HANDSHAKE: {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE},
    State.HANDSHAKE: {ApiKey.SASL_HANDSHAKE},
    State.AGAIN: {ApiKey.SASL_HANDSHAKE},
}
"""The requests that are answered before tokens are exchanged."""
