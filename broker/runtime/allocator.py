"""The C library's allocator: large freed blocks are returned to the system.

glibc keeps freed memory for reuse. The size from which a block is a mapping of its own grows with
each freed one, up to 32 MB, and twice as much may stay free on top of each heap, of which every
thread has one: a frame of 30 MB, or a batch that decompressed to as much, would leave tens of
megabytes resident for good. With a fixed threshold, a large block costs a system call more. Source:
mallopt(3). Other C libraries do not have this function, and are left as they are.
"""

from __future__ import annotations

import ctypes
from typing import Final

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
LARGE_BYTES: Final = 1 << 20


def give_back_large_pieces() -> None:
    """Have pieces from `LARGE_BYTES` on be mappings, and no more than that stay free on a heap."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            mallopt(parameter, LARGE_BYTES)
