"""Log lines that say whose they are, where several processes write to one place."""

from __future__ import annotations

import logging
from typing import Final

from broker.runtime.line_formatter import LineFormatter

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


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
