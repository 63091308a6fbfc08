"""Waits for a commit: called once, in order, cancelled, and never piled up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.partitions.commit_waiters import FEW, CommitWaiters
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def noting(seen: list[tuple[str, ErrorCode]], name: str) -> Callable[[ErrorCode], None]:
    return lambda code: seen.append((name, code))


def test_waiters_are_called_in_the_order_of_their_offsets() -> None:
    seen: list[tuple[str, ErrorCode]] = []
    waiters = CommitWaiters("t-0")
    for name, offset in (("late", 9), ("second", 5), ("first", 3), ("third", 5)):
        waiters.add(offset, noting(seen, name))

    waiters.complete(5, ErrorCode.NONE)
    assert [name for name, _ in seen] == ["first", "second", "third"]

    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert seen[3:] == [("late", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert len(waiters) == 0


def test_a_cancelled_waiter_is_not_called() -> None:
    seen: list[tuple[str, ErrorCode]] = []
    waiters = CommitWaiters("t-0")
    waiters.add(1, noting(seen, "stays"))
    gone = waiters.add(1, noting(seen, "gone"))
    gone.cancel()
    gone.cancel()

    waiters.complete(1, ErrorCode.NONE)

    assert [name for name, _ in seen] == ["stays"]


def test_producers_that_give_up_and_try_again_do_not_pile_up() -> None:
    seen: list[tuple[str, ErrorCode]] = []
    waiters = CommitWaiters("t-0")
    waiters.add(5_000, noting(seen, "patient"))
    for offset in range(1, 5_000):
        waiters.add(offset, noting(seen, "impatient")).cancel()
        assert len(waiters) <= FEW + 3

    waiters.complete(5_000, ErrorCode.NONE)

    assert [name for name, _ in seen] == ["patient"]


def test_a_waiter_that_raises_or_waits_again_affects_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[str, ErrorCode]] = []
    waiters = CommitWaiters("t-0")

    def fail(_: ErrorCode) -> None:
        raise BrokenPipeError

    waiters.add(1, fail)

    def wait_again(_: ErrorCode) -> None:
        waiters.add(2, noting(seen, "again"))

    waiters.add(1, wait_again)
    waiters.add(1, noting(seen, "last"))

    waiters.complete(1, ErrorCode.NONE)
    assert [name for name, _ in seen] == ["last"]
    waiters.complete(2, ErrorCode.NONE)
    assert [name for name, _ in seen] == ["last", "again"]
    assert "t-0" in caplog.text
