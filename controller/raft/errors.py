"""Errors of the quorum's replica."""

from __future__ import annotations


class QuorumError(Exception):
    """A contradiction between the replica and its quorum, after which it must not go on."""
