"""The transport of a protocol before its connection is made, and after it is lost."""

from __future__ import annotations

import asyncio
from typing import Final

SELF_REFERENCES = ("_read_ready_cb", "_write_ready")


class _Unconnected(asyncio.Transport):
    """A transport without a peer: everything that needs one raises NotImplementedError."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """No effect: nothing is ever written."""


UNCONNECTED: Final = _Unconnected()


def release(transport: asyncio.Transport) -> None:
    """Break the reference cycle of a closed transport.

    asyncio's refers to itself by the bound methods that its loop calls; from Python 3.12 on `close`
    ends that, but `abort` does not. The garbage of many short connections would be collected at
    once while all clients wait: 200 ms for six thousand. TLS has the transport below it.
    """
    transport = getattr(transport, "below", transport)
    for name in SELF_REFERENCES:
        if name in getattr(transport, "__dict__", ()):
            setattr(transport, name, None)
