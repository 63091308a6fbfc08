"""Errors of the quorum's replica."""

from __future__ import annotations


class QuorumError(Exception):
    """The replica must not go on: what it holds, or what it was told, cannot be right."""
