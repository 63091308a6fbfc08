"""Reading the report's page as a browser and a screen reader would, strictly."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "source", "link", "br", "hr", "input"}
LINKS = {"src", "srcset", "href", "action", "data", "poster"}


@dataclass
class Page(HTMLParser):
    """The page's tables by caption, its pictures and links; unbalanced tags are errors."""

    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    pictures: list[dict[str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """All text by the tag that it stands in."""

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._caption = ""

    @classmethod
    def of(cls, text: str) -> Page:
        """Read a whole page."""
        page = cls()
        page.feed(text)
        page.close()
        assert page._open == []
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is opened."""
        values = {name: value or "" for name, value in attrs}
        assert len(values) == len(attrs), f"<{tag}> has an attribute twice"
        self.tags.append((tag, values))
        self.links += [value for name, value in values.items() if name in LINKS]
        self.ids += [values["id"]] if "id" in values else []
        if tag == "img":
            self.pictures.append(values)
        if tag == "table":
            self._rows = []
        if tag == "tr":
            self._rows.append([])
        if tag in {"td", "th"}:
            self._rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that it closes what was opened last."""
        assert self._open.pop() == tag
        if tag == "table":
            assert self._caption not in self.tables
            self.tables[self._caption] = self._rows

    def handle_data(self, data: str) -> None:
        """Put text where it stands."""
        if not self._open:
            return
        tag = self._open[-1]
        self.texts[tag] = self.texts.get(tag, "") + data
        if tag == "caption":
            self._caption = data
        if tag in {"td", "th"}:
            self._rows[-1][-1] += data
