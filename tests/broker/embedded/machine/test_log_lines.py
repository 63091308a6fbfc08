"""Log lines go to the broker that has logged them, and to others as without it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.embedded.machine.log_lines import LINES_KEPT, OWNER, LogLines, unwatch, watch

if TYPE_CHECKING:
    import pytest

logger = logging.getLogger("broker.somewhere")


def test_each_broker_gets_its_own_lines() -> None:
    one, other = LogLines(), LogLines("broker 1")
    watch()
    try:
        for lines in (one, other):
            before = OWNER.set(lines)
            logger.info("a line of %s", "this one" if lines is one else "the other one")
            logger.debug("nobody's business")
            OWNER.reset(before)
        logger.warning("of no broker")
    finally:
        unwatch()

    assert [line.rpartition(": ")[2] for line in one()] == ["a line of this one"]
    assert [line.rpartition(": ")[2] for line in other()] == ["a line of the other one"]
    assert other()[0].startswith("broker 1 | ")


def test_other_handlers_receive_their_usual_records(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    lines = LogLines()
    watch()
    before = OWNER.set(lines)
    try:
        logger.info("for the broker's lines alone")
        logger.warning("for all")
        lines.is_muted = True
        logger.error("the last words of one that dies")
    finally:
        OWNER.reset(before)
        unwatch()
    assert [record.message for record in caplog.records] == ["for all"]
    assert len(lines()) == 2


def test_loggers_are_left_as_they_were_found_by_the_last_to_leave() -> None:
    found = logging.getLogger("broker")
    before = (found.level, found.propagate, list(found.handlers), found.parent)
    watch()
    watch()
    unwatch()
    assert found.parent is not before[-1]
    unwatch()
    assert (found.level, found.propagate, list(found.handlers), found.parent) == before


def test_a_logger_that_was_made_not_to_propagate_is_heard_by_its_broker_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("broker"), "propagate", False)
    lines = LogLines()
    watch()
    before = OWNER.set(lines)
    try:
        logger.warning("for the broker's lines alone")
    finally:
        OWNER.reset(before)
        unwatch()
    assert len(lines()) == 1
    assert caplog.records == []


def test_debug_lines_are_logged_when_a_parent_logger_enables_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    watch()
    try:
        logger.debug("for who has asked")
    finally:
        unwatch()
    assert [record.message for record in caplog.records] == ["for who has asked"]


def test_pytest_finds_no_logger_to_which_it_would_add_its_handlers() -> None:
    watch()
    try:
        loggers = logging.root.manager.loggerDict.values()
        assert all(one.propagate for one in loggers if isinstance(one, logging.Logger))
    finally:
        unwatch()


def test_the_newest_lines_are_kept() -> None:
    lines = LogLines()
    for number in range(LINES_KEPT + 3):
        lines.add(str(number))
    assert (lines()[0], len(lines())) == ("3", LINES_KEPT)
