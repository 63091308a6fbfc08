"""The list of compiled modules: who changes one learns here what a compiler would say later."""

from __future__ import annotations

import pytest

from compiled import modules
from compiled.activation import ROOT
from compiled.source_text import compilable

SOURCES = modules.sources(ROOT)


def test_what_is_named_exists() -> None:
    named = [*modules.ROOMS, *modules.SINGLE, *modules.PURE]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("source", SOURCES)
def test_module_can_be_compiled_as_it_stands(source: str) -> None:
    compiled = frozenset(map(modules.name_of, SOURCES))
    text = (ROOT / source).read_text(encoding="utf-8")

    changed = compilable(text, compiled)

    assert changed.count("\n") == text.count("\n")
