"""The versions in which GAPS.md says that our ApiVersions differs from Apache Kafka's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from protocol.api_keys import ApiKey

GAPS = Path(__file__).parents[2] / "GAPS.md"
HEADING = "## Requests, beside Apache Kafka"
ROW = re.compile(r"\| ([A-Z_]+) \| ([\d-]+|none) \| ([\d-]+|none) \| (.+) \|")

Listed = tuple[int, int] | None
"""The lowest and the highest version; None where the request is not listed."""


class Row(NamedTuple):
    """A request that is listed differently, and why."""

    ours: Listed
    theirs: Listed
    why: str


def documented_differences() -> dict[ApiKey, Row]:
    """Every row of the table. Raises ValueError for a line that is none, or the same twice."""
    section = GAPS.read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    rows: dict[ApiKey, Row] = {}
    for line in lines:
        found = ROW.fullmatch(line)
        if found is None or ApiKey[found[1]] in rows:
            raise ValueError(f"no row, or a second one for the same request: {line}")
        rows[ApiKey[found[1]]] = Row(_listed(found[2]), _listed(found[3]), found[4])
    return rows


def _listed(text: str) -> Listed:
    if text == "none":
        return None
    lowest, _, highest = text.partition("-")
    return int(lowest), int(highest)
