"""Blocks of code are run, or say why not; and each page that is run has a test that does so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.interop.documents.test_pages import PAGES_THAT_RUN
from tests.support.documents.pages import RUNNABLE, SHOWN, blocks, decisions, pages
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

TESTING = "docs/testing.md"
"""tests/interop/embedded/test_documented.py runs its files of tests."""


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def test_every_block_has_a_language() -> None:
    odd = [
        f"{block} {block.language or 'no language'}"
        for page in [*pages(), *decisions()]
        for block in blocks(page)
        if block.language not in RUNNABLE | SHOWN
    ]
    assert odd == []


def test_every_block_is_run_or_carries_a_reason() -> None:
    run = {*PAGES_THAT_RUN, TESTING}
    neither = [
        str(block)
        for page in pages()
        for block in blocks(page)
        if block.language in RUNNABLE and block.reason is None and name_of(page) not in run
    ]
    assert neither == []


def test_display_only_blocks_carry_no_not_run_reason() -> None:
    both = [
        str(block)
        for page in pages()
        for block in blocks(page)
        if block.language in SHOWN and block.reason is not None
    ]
    assert both == []


def test_tests_named_by_blocks_exist() -> None:
    named = {
        name
        for page in pages()
        for block in blocks(page)
        for name in re.findall(r"\btests/[\w/]+(?:\.\w+)?", block.reason or "")
    }
    assert len(named) > 5
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
