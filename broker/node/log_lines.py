"""Log lines that say whose they are, where several processes write to one place."""

from __future__ import annotations

import logging
import re
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


_BREAKS: Final = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that end a line, move a terminal's cursor, or have no bytes in UTF-8."""


class LineFormatter(logging.Formatter):
    """Escapes control characters, so that no name can end a line or forge the next one.

    Tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line without a traceback."""
        return _BREAKS.sub(_escaped, super().formatMessage(record))


class PrefixedFormatter(LineFormatter):
    """Puts a name in front of each line, those of tracebacks too."""

    def __init__(self, name: str) -> None:
        super().__init__(FORMAT)
        self._prefix = f"{name} | "

    def format(self, record: logging.LogRecord) -> str:
        """The record's lines."""
        return prefixed(self._prefix, super().format(record))


def prefixed(prefix: str, text: str) -> str:
    """The same lines, each with a prefix."""
    return "\n".join(prefix + line for line in text.split("\n"))


def log_to_stderr(level: str, name: str = "") -> None:
    """Have this process log to standard error, under a name if it is one of several."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrefixedFormatter(name) if name else LineFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
