"""The form of a log line, which stays one line whatever a client calls itself."""

from __future__ import annotations

import logging
import re
from typing import Final

_BREAKS: Final = re.compile("[\0-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What ends a line, moves a terminal's cursor, or has no bytes in UTF-8."""


class LineFormatter(logging.Formatter):
    """Escapes control characters, so that no name can end a line or forge the next one.

    Tracebacks keep their lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line without a traceback."""
        return _BREAKS.sub(_escaped, super().formatMessage(record))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
