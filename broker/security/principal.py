"""Principals: plain text such as `User:alice`, which handlers and ACLs compare as it is."""

from __future__ import annotations


class TokenPrincipal(str):
    """A principal that logged in with a delegation token, and may therefore not make others."""

    __slots__ = ()


def user(name: str) -> str:
    """The principal of a user of that name."""
    return f"User:{name}"
