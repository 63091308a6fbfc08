"""Answers to a follower are delayed for larger batches as long as that gains something."""

from __future__ import annotations

from broker.fetch.follower_batching import LONGEST_PAUSE, FollowerBatching


def answers_at_once(pace: FollowerBatching) -> int:
    """Return the number of answers sent at once before the next delayed one."""
    count = 0
    while not pace.is_worthwhile():
        count += 1
    return count


def test_answers_are_held_back_while_that_gains() -> None:
    pace = FollowerBatching()
    for _ in range(5):
        assert answers_at_once(pace) == 0
        pace.note(has_gained=True)


def test_batching_without_gain_backs_off_up_to_the_longest_pause() -> None:
    pace = FollowerBatching()
    pauses = []
    for _ in range(9):
        pace.note(has_gained=False)
        pauses.append(answers_at_once(pace))
    assert pauses == [1, 3, 7, 15, 31, 63, 127, 127, 127]
    assert pauses[-1] == LONGEST_PAUSE


def test_one_gain_resets_the_backoff() -> None:
    pace = FollowerBatching()
    for _ in range(9):
        pace.note(has_gained=False)
    assert answers_at_once(pace) == LONGEST_PAUSE
    pace.note(has_gained=True)
    assert answers_at_once(pace) == 0
    pace.note(has_gained=False)
    assert answers_at_once(pace) == 1
