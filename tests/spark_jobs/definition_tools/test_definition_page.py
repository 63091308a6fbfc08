"""The reference page of definitions is what the models say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from spark_jobs.definition_tools.definition_file import DefinitionFile
from spark_jobs.definition_tools.definition_page import SECTIONS, render

PAGE = Path(__file__).parents[3] / "docs" / "definitions.md"


def test_the_page_of_definitions_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == render(page), "run: make reference"


def test_each_key_of_each_section_is_explained() -> None:
    bare = [
        f"{header} {name}"
        for header, model in SECTIONS.items()
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert bare == []


def test_definitions_on_the_page_are_right() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        DefinitionFile.model_validate(tomllib.loads(block))
