"""IPv6 on the machine of the tests, some of which need it."""

from __future__ import annotations

import socket

import pytest

LOOPBACK_ZONE = socket.if_indextoname(1)
"""The interface that has ::1, by name: `lo` on Linux, `lo0` elsewhere."""


def _is_there() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not _is_there(), reason="no IPv6 here: ::1 cannot be bound")
