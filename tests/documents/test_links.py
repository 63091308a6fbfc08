"""Every link within the documentation leads to a file, and to a heading of it. No network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from tests.support.documents.pages import decisions, pages
from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

PARSER = MarkdownIt("commonmark").enable("table")
ELSEWHERE = re.compile(r"[a-z]+:")
PAGES = [*pages(), *decisions()]


def links(page: Path) -> list[str]:
    """Return the targets of links and images of a page, but for those to the world."""
    found = []
    for token in PARSER.parse(page.read_text(encoding="utf-8")):
        for child in token.children or []:
            target = child.attrGet("href") or child.attrGet("src")
            if target and not ELSEWHERE.match(str(target)):
                found.append(unquote(str(target)))
    return found


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    tokens = PARSER.parse(page.read_text(encoding="utf-8"))
    titles = [tokens[at + 1] for at, token in enumerate(tokens) if token.type == "heading_open"]
    found: set[str] = set()
    for title in titles:
        text = "".join(
            child.content for child in title.children or [] if child.type in {"text", "code_inline"}
        )
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        number = 0
        while (anchor := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(anchor)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_links_and_headings_are_found() -> None:
    readme = REPOSITORY / "README.md"
    assert "GAPS.md" in links(readme)
    assert "what-works" in anchors(readme)
    assert "threads-time-and-memory" in anchors(REPOSITORY / "ARCHITECTURE.md")
