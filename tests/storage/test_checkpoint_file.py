"""The text of checkpoint files, and damage to it."""

from __future__ import annotations

import pytest

from storage.checkpoint_file import decode_integer, decode_lines, encode_lines
from storage.errors import DamagedFileError


def test_lines_have_a_version_and_a_count_before_them() -> None:
    data = encode_lines(["0 0", "3 1204"])

    assert data == b"0\n2\n0 0\n3 1204\n"
    assert decode_lines(data) == ["0 0", "3 1204"]


def test_file_that_was_just_created_holds_no_lines() -> None:
    assert decode_lines(b"") == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\xff", "not a text file"),
        (b"1\n0\n", "version '1' is unknown"),
        (b"0\n1\n3 12", "the last line is cut off"),
        (b"0\n2\n3 12\n", "1 entries, but the second line says ['2']"),
        (b"0\nx\n", "'x' is not a number"),
    ],
)
def test_damaged_file_says_what_is_wrong(data: bytes, problem: str) -> None:
    with pytest.raises(DamagedFileError) as damaged:
        decode_lines(data)

    assert damaged.value.message == problem


@pytest.mark.parametrize("text", ["", "-7", "+7", " 7", "1_0", "²", "٣", "1" * 5000, str(2**63)])
def test_an_impossible_offset_is_damage(text: str) -> None:
    with pytest.raises(DamagedFileError):
        decode_integer(text)


def test_greatest_offset_is_a_number() -> None:
    assert decode_integer(str(2**63 - 1)) == 2**63 - 1


def test_editors_of_windows_do_no_damage() -> None:
    written = b"\xef\xbb\xbf" + encode_lines(["a", "b"]).replace(b"\n", b"\r\n")

    assert decode_lines(written) == ["a", "b"]
