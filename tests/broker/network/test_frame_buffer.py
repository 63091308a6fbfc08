"""Ownership of received bytes, and the memory they take before they arrive."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING

from broker.network.frame_buffer import BUFFER_BYTES, FrameBuffer
from broker.network.request_memory import RequestMemory, request_memory_limit

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
KEPT_BYTES = 1536 * 1024


class Soon:
    """Callbacks called on demand, as the event loop's next turn would."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def __call__(self, callback: Callable[[], object]) -> None:
        self.calls.append(callback)

    def turn(self) -> None:
        calls, self.calls = self.calls, []
        for callback in calls:
            callback()


def pool(soon: Soon | None = None) -> RequestMemory:
    return RequestMemory(1 << 40, soon or Soon())


def receive(buffer: FrameBuffer, data: bytes) -> None:
    buffer.writable()[: len(data)] = data
    buffer.end += len(data)


def take(buffer: FrameBuffer, size: int) -> memoryview:
    frame = buffer.frames()[buffer.start : buffer.start + size]
    buffer.start += size
    return frame


def test_frame_that_is_kept_is_never_written_over() -> None:
    buffer = FrameBuffer(pool(), KEPT_BYTES)
    receive(buffer, b"one")
    kept = take(buffer, 3)[1:]
    buffer.tidy()
    receive(buffer, b"two")

    assert bytes(kept) == b"ne"
    assert bytes(take(buffer, 3)) == b"two"


def test_frame_that_is_kept_stays_when_the_rest_moves_to_the_front() -> None:
    buffer = FrameBuffer(pool(), KEPT_BYTES)
    receive(buffer, b"kept" + b"x" * (BUFFER_BYTES - 4))
    kept = take(buffer, 4)
    buffer.tidy()

    assert not buffer.is_full
    assert bytes(take(buffer, BUFFER_BYTES - 4)) == b"x" * (BUFFER_BYTES - 4)
    receive(buffer, b"new!")
    assert bytes(kept) == b"kept"


def test_buffer_of_which_nothing_is_kept_is_used_again() -> None:
    buffer = FrameBuffer(pool(), KEPT_BYTES)
    before = id(buffer.frames().obj)
    for _ in range(3):
        receive(buffer, b"one")
        assert bytes(take(buffer, 3)) == b"one"
        buffer.tidy()
        assert (buffer.start, buffer.end) == (0, 0)

    assert id(buffer.frames().obj) == before


def test_claimed_size_takes_no_memory_before_a_buffer_full_has_come() -> None:
    memory = pool()
    buffer = FrameBuffer(memory, KEPT_BYTES)
    receive(buffer, b"12 bytes....")

    assert buffer.make_room(100 * MIB)

    assert (buffer.capacity, memory.used) == (BUFFER_BYTES, 0)


def test_large_frame_arrives_whole_and_its_memory_is_given_back() -> None:
    memory = pool(soon := Soon())
    buffer = FrameBuffer(memory, KEPT_BYTES)
    size = 3 * MIB
    content = bytes(range(256)) * (size // 256)
    position = 0
    while position < size:
        assert buffer.make_room(size)
        piece = content[position : position + min(len(buffer.writable()), 50_000)]
        receive(buffer, piece)
        position += len(piece)
    assert memory.used >= size
    assert bytes(take(buffer, size)) == content
    receive(buffer, b"next")
    buffer.tidy()
    soon.turn()

    assert (buffer.capacity, memory.used) == (BUFFER_BYTES, 0)
    assert bytes(take(buffer, 4)) == b"next"


def test_memory_of_a_large_frame_that_is_kept_counts_until_it_is_let_go() -> None:
    memory = pool(soon := Soon())
    buffer = FrameBuffer(memory, KEPT_BYTES)
    receive(buffer, bytes(BUFFER_BYTES))
    assert buffer.make_room(3 * MIB)
    receive(buffer, bytes(3 * MIB - BUFFER_BYTES))
    kept = take(buffer, 3 * MIB)
    buffer.tidy()
    soon.turn()
    assert (buffer.capacity, memory.used >= 3 * MIB) == (BUFFER_BYTES, True)

    thread = threading.Thread(target=kept.release)  # as recompression lets go of it
    del kept
    thread.start()
    thread.join()
    del thread

    assert memory.used > 0, "it is the loop's number"
    soon.turn()
    assert memory.used == 0


def test_frame_a_little_larger_than_the_buffer_keeps_its_room_for_the_next() -> None:
    memory = pool()
    buffer = FrameBuffer(memory, KEPT_BYTES)
    receive(buffer, bytes(BUFFER_BYTES))
    assert buffer.make_room(BUFFER_BYTES + 10)
    receive(buffer, bytes(10))
    take(buffer, BUFFER_BYTES + 10)
    buffer.tidy()

    assert BUFFER_BYTES < buffer.capacity <= KEPT_BYTES
    assert memory.used == 0, "only large ones count"
    buffer.trim()
    assert buffer.capacity == BUFFER_BYTES


def test_buffer_that_outgrows_what_a_connection_may_keep_counts_and_is_given_back() -> None:
    soon = Soon()
    memory = pool(soon)
    buffer = FrameBuffer(memory, BUFFER_BYTES)
    receive(buffer, b"x" * BUFFER_BYTES)

    assert buffer.make_room(BUFFER_BYTES + 1)
    assert memory.used == buffer.capacity > BUFFER_BYTES
    receive(buffer, b"y")
    frame = take(buffer, BUFFER_BYTES + 1)
    del frame
    buffer.tidy()
    soon.turn()

    assert (buffer.capacity, memory.used) == (BUFFER_BYTES, 0)


def test_without_memory_a_large_frame_waits_until_some_is_freed() -> None:
    soon = Soon()
    memory = RequestMemory(4 * MIB, soon)
    buffers = [FrameBuffer(memory, KEPT_BYTES) for _ in range(3)]
    for buffer in buffers:
        receive(buffer, bytes(BUFFER_BYTES))
    woken: list[int] = []
    assert buffers[0].make_room(3 * MIB)
    assert buffers[1].make_room(3 * MIB), "there was some left: what was begun can be finished"
    assert not buffers[2].make_room(3 * MIB)
    memory.wait(lambda: woken.append(2))
    assert buffers[2].capacity == BUFFER_BYTES

    buffers[0].release()
    soon.turn()

    assert woken == [2]
    assert buffers[2].make_room(3 * MIB)


def test_a_waiter_for_memory_that_left_is_not_called() -> None:
    soon = Soon()
    memory = RequestMemory(1, soon)
    woken: list[str] = []
    first, second = (lambda: woken.append("first")), (lambda: woken.append("second"))
    held = bytearray(10)

    class Piece(bytearray):
        pass

    piece = Piece(held)
    memory.note(piece)
    memory.wait(first)
    memory.wait(second)
    memory.forget(first)
    del piece
    gc.collect()
    soon.turn()

    assert woken == ["second"]


def test_limit_is_the_configured_one_or_a_share_of_the_machine() -> None:
    assert request_memory_limit(12_345) == 12_345
    assert request_memory_limit(-1) > 16 * MIB
    assert request_memory_limit(-1, brokers=4) == request_memory_limit(-1) // 4
    assert request_memory_limit(12_345, brokers=4) == 12_345
