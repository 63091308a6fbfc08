"""An error that nobody foresaw is a violation, even if a broker goes on after it."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Tracebacks(logging.Handler):
    """Notes log lines that show one."""

    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = "".join(traceback.format_exception(record.exc_info[1]))
            self._note(f"{record.getMessage()}: {record.exc_info[1]!r}\n{text}")
