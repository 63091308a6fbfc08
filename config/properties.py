r"""Java property files, read as `java.util.Properties.load` reads them.

A logical line is one or more natural lines, all but the last ending in an odd number of
backslashes; leading blanks of each are dropped. A line whose first character is `#` or `!` is a
comment. The key ends at the first `=`, `:` or blank that no backslash precedes; blanks around the
separator do not count. `\t`, `\n`, `\r`, `\f` and `\uXXXX` are escapes; any other escaped character
stands for itself.

    key = value        key:value        key value
    log.dirs=/data/one,\
             /data/two                  is one value: /data/one,/data/two
"""

from __future__ import annotations

import re
from typing import NamedTuple

from config.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_UNICODE_DIGITS = 4
_NO_TEXT = re.compile(r"[^\t\n\f\r\x20-\x7e\x80-\xff]")
_FOUR_DIGITS = re.compile(r"[0-9a-fA-F]{4}")

ENCODING = "iso-8859-1"
"""Encoding in which Java reads property files; other characters need a `\\uXXXX` escape."""


BYTE_ORDER_MARK = "\xef\xbb\xbf"
"""Byte order mark of some editors before the first key, read as that encoding."""


class MalformedFileError(ConfigError):
    """A file cannot be read as properties."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


class Property(NamedTuple):
    """One entry of a property file, and the number of the line on which it begins."""

    name: str
    value: str
    line: int


def parse(text: str) -> list[Property]:
    """Read every entry in order, repeated keys included; raise ConfigError with a line number."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    _refuse_other_files(text)
    return load(text)


def load(text: str) -> list[Property]:
    """As `parse`, of text that may have any characters, as secrets in UTF-8 do."""
    return [_entry(logical_line, number) for logical_line, number in _logical_lines(text)]


def _refuse_other_files(text: str) -> None:
    """Raise ConfigError for a program, an archive or UTF-16: each has bytes that no text has."""
    found = _NO_TEXT.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        byte = ord(found[0])
        raise MalformedFileError(line, f"this is not a property file: it has a byte 0x{byte:02x}")


def _logical_lines(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    parts: list[str] = []
    begin = 0
    for number, natural_line in enumerate(_natural_lines(text), start=1):
        line = natural_line.lstrip(_BLANKS)
        if not parts:
            if not line or line[0] in "#!":
                continue
            begin = number
        continues = _ends_in_odd_backslashes(line)
        parts.append(line[:-1] if continues else line)
        if not continues:
            found.append(("".join(parts), begin))
            parts = []
    if parts:
        found.append(("".join(parts), begin))
    return found


def _natural_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(line: str, number: int) -> Property:
    end = _end_of_key(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return Property(_unescaped(line[:end], number), _unescaped(rest, number), number)


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    return min(position, len(line))


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":
            character, position = _escape(text, position, number)
        pieces.append(character)
    return "".join(pieces)


def _escape(text: str, position: int, number: int) -> tuple[str, int]:
    """Decode the escape after a backslash; return it and the position after it."""
    letter = text[position : position + 1]
    if letter != "u":
        return _ESCAPES.get(letter, letter), position + 1
    digits = text[position + 1 : position + 1 + _UNICODE_DIGITS]
    if not _FOUR_DIGITS.fullmatch(digits):
        why = f"\\u{digits} is not an escape: four hexadecimal digits follow \\u"
        raise MalformedFileError(number, why)
    return chr(int(digits, 16)), position + 1 + _UNICODE_DIGITS
