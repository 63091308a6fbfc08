"""What neither `make test` nor `make test-slow`, and so not CI, runs: `make test-all` does.

A plugin of pytest. Besides these, CI leaves out all seeds of a slow test but its first
(`--one-seed`), and whatever says by itself that the machine lacks something (Go, Kerberos).
"""

from __future__ import annotations

import pytest

LEFT_OUT: dict[str, str] = {}
"""Functions by file, and why; they are marked `manual`."""


@pytest.hookimpl(tryfirst=True)  # before what is deselected by its marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.nodeid.partition("[")[0] in LEFT_OUT:
            item.add_marker(pytest.mark.manual)
