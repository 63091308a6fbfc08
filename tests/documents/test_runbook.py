"""Log lines, metrics and keys quoted by the runbook and the pages of operations exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from urllib.request import urlopen

import pytest

from broker.testing import EmbeddedBroker
from tests.support.brokers.broker_process import free_port
from tests.support.documents.pages import DOCS
from tests.support.jars import REPOSITORY

PACKAGES = ("broker", "config", "controller", "coordinator", "protocol", "storage")
RUNBOOK = (DOCS / "runbook.md").read_text(encoding="utf-8")
LINE_COLUMN = "line in the log"
ANOTHER_S = {"Watchdog timeout"}
"""Lines of systemd."""
PLACEHOLDER = re.compile(r"%[-\d.]*[sdrgf]")
ELLIPSIS = "…"
METRIC = re.compile(
    r"`((?:kafka|node|process)_[a-z_]+)`|\b(kafka_(?!broker_python)[a-z]+_[a-z_]+)\b"
)


def quoted_lines() -> list[str]:
    """Return what the column of log lines quotes, table by table."""
    found = []
    column = 0
    for row in RUNBOOK.splitlines():
        if row.startswith("|"):
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            if LINE_COLUMN in cells:
                column = cells.index(LINE_COLUMN)
            found += re.findall(r"`([^`]+)`", cells[column])
    return [line for line in found if line not in ANOTHER_S]


@cache
def templates() -> list[str]:
    """Return every text of the code, with an ellipsis for what is filled in."""
    found = []
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(PLACEHOLDER.sub(ELLIPSIS, node.value))
                elif isinstance(node, ast.JoinedStr):
                    found.append("".join(_shown(value) for value in node.values))
    return found


def _shown(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else ELLIPSIS


def is_logged(quoted: str) -> bool:
    """Return whether a text of the code can be read as the quotation."""
    words = [re.escape(part) for part in quoted.split(ELLIPSIS)]
    pattern = re.compile(".*".join(words))
    return any(pattern.search(text) for text in templates())


@pytest.mark.parametrize("quoted", quoted_lines())
def test_lines_of_the_runbook_are_written_by_the_code(quoted: str) -> None:
    assert len(quoted.strip(f"{ELLIPSIS} ")) >= 6, "too short to be looked for"
    assert is_logged(quoted)


def test_lines_that_the_code_does_not_write_are_detected() -> None:
    assert not is_logged("the broker … is bored")
    assert len(quoted_lines()) > 30


@pytest.fixture(scope="module")
def metrics() -> set[str]:
    """Names of all samples that a broker serves."""
    port = free_port()
    settings = {"metrics.port": str(port), "metrics.host": "127.0.0.1"}
    with EmbeddedBroker(settings) as broker:
        broker.create_topic("orders")
        pages = [
            urlopen(f"http://127.0.0.1:{port}/metrics{page}").read().decode()
            for page in ("", "/partitions")
        ]
    return set(re.findall(r"^# HELP (\S+)", "\n".join(pages), re.MULTILINE))


@pytest.mark.parametrize("name", ["runbook.md", "operations.md", "messaging.md", "node.md"])
def test_metrics_that_pages_name_are_served(name: str, metrics: set[str]) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    named = {one or other for one, other in METRIC.findall(text)}
    named -= {"node_broker_up", "node_broker_restarts_total"}  # the supervisor's
    missing = {
        metric
        for metric in named
        if metric not in metrics
        and not (metric.endswith("_") and any(one.startswith(metric) for one in metrics))
    }
    assert missing == set()
    assert named
