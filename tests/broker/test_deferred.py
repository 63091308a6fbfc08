"""Deferred answers: once, now or later, and abandoned."""

from __future__ import annotations

from broker.deferred import Deferred


def test_listener_set_before_completion_gets_the_value() -> None:
    deferred: Deferred[int] = Deferred()
    seen: list[int] = []
    deferred.then(seen.append)
    assert seen == []
    assert deferred.complete(7)
    assert seen == [7]


def test_listener_set_after_completion_gets_the_value_at_once() -> None:
    deferred: Deferred[int] = Deferred()
    deferred.complete(7)
    seen: list[int] = []
    deferred.then(seen.append)
    assert seen == [7]


def test_second_completion_changes_nothing() -> None:
    deferred: Deferred[int] = Deferred()
    seen: list[int] = []
    deferred.then(seen.append)
    deferred.complete(1)
    assert not deferred.complete(2)
    assert seen == [1]
    assert deferred.value == 1


def test_abandoned_tells_the_completer_and_forgets_the_listener() -> None:
    told: list[str] = []
    deferred: Deferred[int] = Deferred(on_abandon=lambda: told.append("gone"))
    seen: list[int] = []
    deferred.then(seen.append)
    deferred.abandon()
    deferred.complete(1)
    assert told == ["gone"]
    assert seen == []
