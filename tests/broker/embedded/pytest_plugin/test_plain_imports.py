"""Modules for which pytest's import hook is bypassed."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder

import pytest

from broker.embedded.pytest_plugin.plain_imports import PlainImports


class Rewriting:
    """Stand-in for pytest's finder: it finds everything."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec:
        return ModuleSpec(name, None, origin="rewritten")


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> PlainImports:
    rewriting = Rewriting()
    monkeypatch.setattr(sys, "meta_path", [rewriting, PathFinder])
    plain = PlainImports(rewriting)
    plain.install()
    return plain


def test_modules_of_the_broker_are_found_without_assertion_rewriting(plain: PlainImports) -> None:
    import broker

    found = plain.find_spec("broker.app", broker.__path__)
    assert found is not None
    assert found.origin is not None
    assert found.origin.endswith("app.py")
    assert plain.find_spec("broker.not_there", broker.__path__) is None


@pytest.mark.parametrize("name", ["brokers.app", "broker", "orders.test_orders"])
def test_modules_of_others_are_left_to_pytest(plain: PlainImports, name: str) -> None:
    assert plain.find_spec(name, None) is None


def test_the_import_hook_is_first_and_can_be_removed(plain: PlainImports) -> None:
    assert sys.meta_path[0] is plain
    plain.remove()
    assert plain not in sys.meta_path
