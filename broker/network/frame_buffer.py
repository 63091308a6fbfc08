"""The receive buffer of a connection, and the ownership of its bytes.

The kernel writes into the buffer, frames are handed out as views of it, and a record batch goes to
the log without a copy. Two things follow.

**Ownership.** A view keeps the whole buffer alive. Bytes in a frame that was handed out are
overwritten only after every view of them is gone; if one is still held (by a produce that waits for
a transaction's coordinator, for recompression, for the broker to join its cluster), the buffer is
left to it and the connection goes on in a fresh one. CPython's reference counts show it, so that no
handler has to copy, and none can forget to. The count is that of the mapping: a `memoryview` of it
holds one reference, shared by all its slices.

    mapping  <-- self._memory                         1
             <-- self._view, for the kernel           2
             <-- a view of `frames`, or a slice of it 3   kept: it is not reused

**Memory.** Buffers are anonymous mappings, not `bytearray`s. Their pages exist from the moment
something is written to them, so a connection that sends small requests costs one page of its 128
KB, and the claim of a frame of 100 MB costs nothing until the bytes have come. A freed mapping goes
back to the system at once. A frame that is larger than the buffer gets a mapping of its size once
the buffer is full of it; after it, one larger than `connection.buffer.max.bytes` is freed.
"""

from __future__ import annotations

import mmap
import sys

from broker.network.request_memory import RequestMemory

BUFFER_BYTES = 128 * 1024
"""Room for the five requests of 16 KB that a Java producer has in flight at its defaults.

Fixed: a buffer costs only the pages that were written to.
"""
SPARE_BYTES = 128 * 1024
"""A larger buffer holds this much beside its frame, so that one read brings many frames."""

_NO_HUGE_PAGES = getattr(mmap, "MADV_NOHUGEPAGE", None)
"""A huge page is 2 MB from its first byte on."""


class FrameBuffer:
    """Bytes received and not handled yet: those from `start` to `end`."""

    __slots__ = ("_kept_bytes", "_memory", "_pool", "_view", "capacity", "end", "start")

    def __init__(self, pool: RequestMemory, kept_bytes: int) -> None:
        """A buffer of up to `kept_bytes` stays for the next frame (`connection.buffer.max.bytes`).

        Only larger ones count in `pool`, and they are given back at once.
        """
        self._pool = pool
        self._kept_bytes = kept_bytes
        self.start = 0
        self.end = 0
        self._memory = _mapping(BUFFER_BYTES)
        self._view = memoryview(self._memory)
        self.capacity = BUFFER_BYTES

    def writable(self) -> memoryview:
        """Free space behind the bytes received."""
        return self._view[self.end :]

    def frames(self) -> memoryview:
        """The buffer, to be sliced into frames; release it before `make_room`."""
        return memoryview(self._memory)

    @property
    def is_empty(self) -> bool:
        """True if all bytes received are handled."""
        return self.start == self.end

    @property
    def is_full(self) -> bool:
        """True if the buffer has no free space."""
        return self.end == self.capacity

    @property
    def is_counted(self) -> bool:
        """True if it counts against the shared request memory, until its frame is handled."""
        return self.capacity > self._kept_bytes

    def make_room(self, needed: int) -> bool:
        """Make room for the frame at `start`, as far as its bytes have come; harmless if it fits.

        `needed` is its size with the prefix. Returns False if the request memory is used up: the
        caller waits for `RequestMemory`. Raises OSError if the system is out of memory.
        """
        held = self.end - self.start
        if self.start + needed <= self.capacity and not self.is_full:
            return True
        if needed > self.capacity and held == self.capacity:
            capacity = needed + SPARE_BYTES
            if capacity > self._kept_bytes and not self._pool.has_room():
                return False
            self._replace(capacity)
        elif self.start:
            self._move_to_front()
        return True

    def tidy(self) -> None:
        """Make room after frames were handled, from the front if nothing is left over."""
        start = self.start
        if not start:
            return
        held = self.end - start
        if self.capacity > self._kept_bytes and held <= BUFFER_BYTES:
            self._replace(BUFFER_BYTES)
        elif held:
            if self.is_full:
                self._move_to_front()
        elif sys.getrefcount(self._memory) > _OWN_REFERENCES:  # as `_is_shared`, for each read
            self._replace(self.capacity)
        else:
            self.start = self.end = 0

    def trim(self) -> None:
        """Free the memory of an idle connection."""
        if self.start == self.end:
            self._replace(BUFFER_BYTES)

    def release(self) -> None:
        """Free all memory: the connection is closed, and may still be referenced."""
        self._view = memoryview(b"")
        self._memory = _NOTHING
        self.start = self.end = self.capacity = 0

    def _move_to_front(self) -> None:
        if self._is_shared():
            self._replace(self.capacity)
            return
        held = self.end - self.start
        self._memory.move(0, self.start, held)
        self.start, self.end = 0, held

    def _replace(self, capacity: int) -> None:
        """Continue in another mapping, with the unhandled bytes; views keep the old one."""
        rest = self._view[self.start : self.end]
        memory = _mapping(capacity)
        if capacity > self._kept_bytes:
            self._pool.note(memory)
        self._memory = memory
        self._view = memoryview(memory)
        self.capacity = capacity
        self.start, self.end = 0, len(rest)
        self._view[: self.end] = rest

    def _is_shared(self) -> bool:
        """Return whether a view of any frame is still held."""
        return self.count_references() > _OWN_REFERENCES

    def count_references(self) -> int:
        """References to the mapping, as this interpreter counts them."""
        return sys.getrefcount(self._memory)


def _mapping(capacity: int) -> mmap.mmap:
    memory = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if _NO_HUGE_PAGES is not None:
        memory.madvise(_NO_HUGE_PAGES)
    return memory


_NOTHING = _mapping(1)
"""The mapping of a released buffer."""

_OWN_REFERENCES = FrameBuffer(
    RequestMemory(0, lambda call: call()), BUFFER_BYTES
).count_references()
"""The references of a buffer of which no frame is held."""
