"""The pages of the documentation, and the blocks of code in them.

Every block in a language that can be run is run by a test, or says in a comment above it why not:

    <!-- not run: it runs until Ctrl-C -->
    ```console
    $ make run
    ```
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

DOCS = REPOSITORY / "docs"
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "GAPS.md", "README.md", "STYLE.md")
EXAMPLES = "examples/README.md"

RUNNABLE = {"bash", "console", "java", "python", "sh"}
SHOWN = {"ini", "mermaid", "properties", "text", "toml", "yaml", "{toctree}", "{tab-set}"}
"""Languages of blocks that are only displayed; a block without a language would be unidentified."""

_FENCE = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>[^\n]+?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>[^\s`]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None
    """Reason why no test runs it; None where one does."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return every page of the site, README too."""
    own = [path for path in sorted(DOCS.rglob("*.md")) if "decisions" not in path.parts]
    return [*own, *(REPOSITORY / name for name in ROOT_PAGES), REPOSITORY / EXAMPLES]


def decisions() -> list[Path]:
    """Return the records of decisions, which are history and whose blocks are not run."""
    return sorted((DOCS / "decisions").glob("*.md"))


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order, without their indentation."""
    text = page.read_text(encoding="utf-8")
    return [_block(page, text, match) for match in _FENCE.finditer(text)]


def _block(page: Path, text: str, match: re.Match[str]) -> Block:
    indent = len(match["indent"])
    lines = (line[indent:] for line in match["text"].splitlines(keepends=True))
    return Block(
        page=str(page.relative_to(REPOSITORY)),
        line=text.count("\n", 0, match.start("language")) + 1,
        language=match["language"],
        text="".join(lines),
        reason=match["reason"],
    )


def to_run(name: str, language: str) -> list[Block]:
    """Return the blocks of a page that a test has to run."""
    found = blocks(REPOSITORY / name)
    return [one for one in found if one.language == language and one.reason is None]
