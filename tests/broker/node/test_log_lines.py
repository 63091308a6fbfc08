"""Log lines with names in them that clients made up."""

from __future__ import annotations

import logging
import sys

from broker.node.log_lines import LineFormatter


def formatted(name: str, *, is_failure: bool = False) -> str:
    try:
        raise ValueError("why")
    except ValueError:
        error = sys.exc_info() if is_failure else None
    record = logging.LogRecord("broker", logging.INFO, "", 0, "group %s", (name,), error)
    return LineFormatter("%(levelname)s %(message)s").format(record)


def test_a_name_neither_ends_a_line_nor_moves_the_cursor() -> None:
    assert formatted("a\nINFO b\r\x1b[2J\x85\u2028") == (r"INFO group a\nINFO b\r\x1b[2J\x85\u2028")


def test_half_a_pair_of_surrogates_can_be_written() -> None:
    line = formatted("a\ud800")
    assert line == r"INFO group a\ud800"
    assert line.encode() == rb"INFO group a\ud800"


def test_other_text_stays_as_it_is() -> None:
    assert formatted("Zürich \ufffd 日本 😀\tx") == "INFO group Zürich \ufffd 日本 😀\tx"


def test_a_traceback_keeps_its_lines() -> None:
    lines = formatted("a\nb", is_failure=True).split("\n")
    assert lines[0] == r"INFO group a\nb"
    assert (lines[1], lines[-1]) == ("Traceback (most recent call last):", "ValueError: why")
