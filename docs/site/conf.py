"""How Sphinx makes the site of these pages, for `make docs`.

Why Sphinx: docs/decisions/0048-the-site-by-sphinx.md.

The sources are all of the repository, so that a link between pages is the same file here, on GitHub
and on the site. What is no page is left out.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.parsers.rst import Directive

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"ARCHITECTURE.md", "CHANGELOG.md", "GAPS.md", "STYLE.md", "docs", "examples"}

project = "kafka-broker-python"
author = "The kafka-broker-python maintainers"
root_doc = "docs/index"
html_title = project
exclude_patterns = [
    *(path.name for path in ROOT.iterdir() if path.name not in PAGES),
    "docs/site",
    "examples/*/*",
]

extensions = ["myst_parser", "sphinx_design"]
source_suffix = {".md": "markdown"}
nitpicky = True
suppress_warnings = ["myst.header"]  # decisions begin where their numbers do

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# Nothing comes from elsewhere: neither fonts nor scripts.
html_static_path = ["_static", str(ROOT / "build" / "docs" / "static")]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_js_files = ["diagrams.js"]
html_additional_pages = {"index": "to_documentation.html"}
html_copy_source = False
html_show_sourcelink = False

# Pages that have no section.
html_sidebars: dict[str, list[str]] = {"docs/index": [], "docs/quick-start": []}
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "article_header_start": ["breadcrumbs"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copyright = f"{author}. Apache Kafka is a trademark of the Apache Software Foundation"


class Diagram(Directive):  # type: ignore[misc]  # docutils has no types
    """A block in Mermaid's language, drawn in the browser by `_static/diagrams.js`.

    sphinxcontrib-mermaid loads its script as a module, which browsers refuse to load from a file.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Leave the text as it is, where the script finds it."""
        text = escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


def setup(app: Sphinx) -> None:
    """Make diagrams known."""
    app.add_directive("mermaid", Diagram)
