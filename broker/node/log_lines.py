"""Log lines that say whose they are, where several processes write to one place."""

from __future__ import annotations

import logging
from typing import Final

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class PrefixedFormatter(logging.Formatter):
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


def log_as(name: str, level: str) -> None:
    """Have this process log to standard error under a name."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrefixedFormatter(name))
    logging.basicConfig(level=level, handlers=[handler])
