"""Processes that must not outlive the tests that started them, even when those are killed."""

from __future__ import annotations

DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Put in front of a command: the kernel kills it when its parent is gone (util-linux)."""
