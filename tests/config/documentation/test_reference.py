"""The page and the sample file that ship are true to the rows."""

from __future__ import annotations

from pathlib import Path

from config.documentation.reference import render
from config.loader import load_broker_config

ROOT = Path(__file__).parents[3]


def test_the_page_is_fresh() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == render(), "run: make reference"


def test_each_key_is_one_row_of_a_table() -> None:
    tables = render().partition("## Topic keys")[2].splitlines()
    assert all(line.startswith(("|", "#")) for line in tables if line)


def test_the_sample_file_loads_without_a_warning() -> None:
    config, warnings = load_broker_config(ROOT / "config" / "server.properties")
    assert (config.broker_id, config.log_dirs, warnings) == (0, ("data/kafka",), [])
