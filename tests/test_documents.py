"""Links of the documents lead somewhere, and decisions have one number each."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import broker.handlers.all_handlers  # noqa: F401  (they are entered into the table)
from broker.requests.api_table import ROUTES
from tests.support.listed_versions import documented_differences

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "decisions"
MODULE = re.compile(r"`((?:protocol|config|storage|coordinator|controller|broker)/[\w/]+\.py)`")
DECISION = re.compile(r"docs/decisions/\d{4}[\w-]*(?:\.md)?")


def tracked_texts() -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.splitlines()]
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in paths
        if path.exists()
    }


def test_decisions_have_one_number_each_which_is_that_of_their_title() -> None:
    paths = sorted(DECISIONS.glob("[0-9]*.md"))
    titles = [path.read_text(encoding="utf-8").splitlines()[0] for path in paths]
    numbers = [int(path.name[:4]) for path in paths]
    assert numbers == list(range(1, len(paths) + 1))
    assert [title.split()[1] for title in titles] == [f"{number}." for number in numbers]


def test_decisions_that_are_referred_to_exist() -> None:
    missing = [
        (name, reference)
        for name, text in tracked_texts().items()
        for reference in DECISION.findall(text)
        if not (ROOT / reference).is_file()
    ]
    assert missing == []


def test_modules_that_the_architecture_names_exist() -> None:
    named = MODULE.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_versions_that_gaps_lists_are_those_that_are_served() -> None:
    differences = documented_differences()
    assert len(differences) > 1
    served = {
        key: (route.advertised.first, route.advertised.last)
        for key, route in ROUTES.items()
        if not route.is_for_clusters
    }
    assert {key: row.ours for key, row in differences.items()} == {
        key: served.get(int(key)) for key in differences
    }
