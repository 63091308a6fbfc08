"""The transport of a protocol whose connection is not made yet."""

from __future__ import annotations

import asyncio
from typing import Final


class _Unconnected(asyncio.Transport):
    """Nothing can be sent or received: all that needs a peer raises NotImplementedError."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever written."""


UNCONNECTED: Final = _Unconnected()
