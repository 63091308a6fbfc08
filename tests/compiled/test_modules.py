"""The list of compiled modules: who changes one learns here what a compiler would say later."""

from __future__ import annotations

import subprocess
import sys

import pytest

from compiled import modules
from compiled.activation import ROOT
from compiled.source_text import compilable

SOURCES = modules.sources(ROOT)
BEGINS = """
import sys
from compiled import modules
import broker.__main__, broker.command, broker.node.member_lock, storage.compaction.__main__
print([name for name in sys.modules if name in {names}])
"""


def test_what_is_named_exists() -> None:
    named = [*modules.ROOMS, *modules.SINGLE, *modules.PURE]
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("source", SOURCES)
def test_module_can_be_compiled_as_it_stands(source: str) -> None:
    compiled = frozenset(map(modules.name_of, SOURCES))
    text = (ROOT / source).read_text(encoding="utf-8")

    changed = compilable(text, compiled)

    assert changed.count("\n") == text.count("\n")


@pytest.mark.process
def test_nothing_compiled_is_imported_before_it_is_decided_what_to_run() -> None:
    program = BEGINS.format(names=sorted(map(modules.name_of, SOURCES)))
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[]\n"
