"""Waits for the disk for many files in one call, with Linux's asynchronous I/O (`io_submit(2)`).

A thread that waits for one file after the other takes the interpreter's lock back from the event
loop after each. Here the kernel waits for all of them beside each other, where the file system
makes their commits one, and the thread comes back once. Needs Linux 4.18; where that is not to be
had, or a file system does not know it, each file is waited for as ever.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_AT_ONCE: Final = 128
"""Files that one thread waits for in one call; more are waited for in several."""
FDSYNC: Final = 3
"""IOCB_CMD_FDSYNC: as `fdatasync(2)`."""


class Calls(NamedTuple):
    """Numbers of the system calls, which the C library has no functions for."""

    setup: int
    destroy: int
    getevents: int
    submit: int


NUMBERS: Final = {
    "x86_64": Calls(206, 207, 208, 209),
    "aarch64": Calls(0, 1, 4, 2),
    "riscv64": Calls(0, 1, 4, 2),
}
"""By the name that `uname(2)` has for the machine."""


class _ControlBlock(ctypes.Structure):
    """struct iocb of linux/aio_abi.h, on a machine whose numbers begin with the lowest byte."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("event_descriptor", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """struct io_event of the same."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("block", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("more", ctypes.c_int64),
    )


class Syncs:
    """One thread's way to the disk. Raises OSError if the system does not have it."""

    def __init__(self) -> None:
        self._context = ctypes.c_ulong(0)
        self._calls = _calls()
        _call(self._calls.setup, MOST_AT_ONCE, ctypes.byref(self._context))
        weakref.finalize(self, _SYSCALL, ctypes.c_long(self._calls.destroy), self._context)
        self._blocks = (_ControlBlock * MOST_AT_ONCE)()
        self._pointers = (ctypes.c_void_p * MOST_AT_ONCE)(
            *(ctypes.addressof(block) for block in self._blocks)
        )
        for number, block in enumerate(self._blocks):
            block.data = number
            block.opcode = FDSYNC
        self._events = (_Event * MOST_AT_ONCE)()

    def sync(self, descriptors: Sequence[int]) -> list[int]:
        """Return when all files are on the disk: 0 for each, or the number of its error."""
        numbers: list[int] = []
        for begin in range(0, len(descriptors), MOST_AT_ONCE):
            numbers += self._sync(descriptors[begin : begin + MOST_AT_ONCE])
        return numbers

    def _sync(self, descriptors: Sequence[int]) -> list[int]:
        for block, descriptor in zip(self._blocks, descriptors, strict=False):
            block.descriptor = descriptor
        taken = self._submit(len(descriptors))
        numbers = self._results(taken)
        # Requests that the kernel refuses, for lack of room or as unsupported.
        return numbers + [sync_one(descriptor) for descriptor in descriptors[taken:]]

    def _submit(self, count: int) -> int:
        """Hand in the first `count` blocks; returns how many were taken."""
        taken = 0
        try:
            while taken < count:
                pointers = ctypes.byref(self._pointers, taken * ctypes.sizeof(ctypes.c_void_p))
                taken += _call(self._calls.submit, self._context, count - taken, pointers)
        except OSError:  # it concerns the next one, which is then synced by itself
            return taken
        return taken

    def _results(self, count: int) -> list[int]:
        """Wait for all that were handed in."""
        numbers = [0] * count
        left = count
        while left:
            try:
                getevents, for_ever = self._calls.getevents, ctypes.c_void_p()
                got = _call(getevents, self._context, left, left, self._events, for_ever)
            except InterruptedError:
                continue
            for event in self._events[:got]:
                numbers[event.data] = -min(event.result, 0)
            left -= got
        return numbers


def sync_one(descriptor: int) -> int:
    """Wait for one file; returns 0 or the number of the error."""
    try:
        os.fdatasync(descriptor)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def sync_together(descriptors: Sequence[int]) -> list[int]:
    """Wait for the disk on the calling thread: 0 for each file, or the number of its error."""
    if len(descriptors) > 1 and is_available():
        syncs: Syncs | None = getattr(_own, "syncs", None)
        if syncs is None:
            try:
                # Freed with its thread.
                syncs = _own.syncs = Syncs()
            except OSError:  # too many are in use (fs.aio-max-nr)
                return [sync_one(descriptor) for descriptor in descriptors]
        return syncs.sync(descriptors)
    return [sync_one(descriptor) for descriptor in descriptors]


@cache
def is_available() -> bool:
    """Return whether the system supports it: probed once, with 0 events.

    Creating and destroying a context takes 30 ms, and the event loop calls this.
    """
    try:
        _call(_calls().setup, 0, ctypes.byref(ctypes.c_ulong(0)))
    except OSError as error:
        return error.errno == errno.EINVAL
    return True


_own = threading.local()
_SYSCALL: Final = ctypes.CDLL(None, use_errno=True).syscall
_SYSCALL.restype = ctypes.c_long


def _calls() -> Calls:
    known = NUMBERS.get(os.uname().machine) if sys.platform == "linux" else None
    if known is None or sys.maxsize < 2**32:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return known


def _call(number: int, *arguments: object) -> int:
    """Make a system call; raises OSError."""
    # A bare number is passed as an int, which sets only the lower half of a register.
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _SYSCALL(ctypes.c_long(number), *given)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
