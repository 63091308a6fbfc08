"""Pages that are written by programs are what the programs write today."""

from __future__ import annotations

from tests.support.documents import clients_page
from tests.support.documents.pages import DOCS


def test_the_page_of_clients_is_current() -> None:
    page = (DOCS / "clients.md").read_text(encoding="utf-8")
    assert page == clients_page.render(), "run: make reference"


def test_every_room_of_tests_has_a_subject_and_every_client_a_version() -> None:
    rooms = {path.parent.name for path in clients_page.INTEROP.glob("*/__init__.py")}
    assert rooms == clients_page.SUBJECTS.keys()
    rows = [line for line in clients_page.render().splitlines() if line.startswith("| ")]
    assert len(rows) > 20
    assert all(cell.strip() for row in rows for cell in row.strip("|").split("|"))
