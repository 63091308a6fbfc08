"""Changes to the text of a module on its way into the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.wheel.aliases import aliases, public_names
from scripts.wheel.imports import UnpackableError, installed
from scripts.wheel.tree import project

PACKAGES = ("broker", "config", "storage")
ROOT = Path(__file__).parents[2]


def _installed(text: str, root: Path = ROOT) -> str:
    return installed(text, PACKAGES, root)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from config.key import Key", "from kafka_broker_python.config.key import Key"),
        ("from config import key, broker", "from kafka_broker_python.config import key, broker"),
        ("import broker", "import kafka_broker_python.broker as broker"),
        ("import config as c", "import kafka_broker_python.config as c"),
        (
            "import os, storage.log, config",
            "import os, kafka_broker_python.storage.log, kafka_broker_python.config as config",
        ),
        (
            'é = "ö"; from config import key',
            'é = "ö"; from kafka_broker_python.config import key',
        ),
    ],
)
def test_imports_of_ours_get_the_package_before_their_names(before: str, after: str) -> None:
    assert _installed(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "from configparser import ConfigParser",
        "import storages",
        "from . import config",
        '"""from config import key"""',
        "config = 1  # from config import key",
        'text = "from config import key"',
    ],
)
def test_nothing_else_is_changed(text: str) -> None:
    assert _installed(text) == text


def test_imports_below_other_statements_are_changed_too() -> None:
    text = "if TYPE_CHECKING:\n    from config.key import (\n        Key,\n    )\n"
    assert _installed(text) == text.replace("config.key", "kafka_broker_python.config.key")


def test_a_name_that_an_import_would_no_longer_bind_is_refused() -> None:
    with pytest.raises(UnpackableError, match=r"line 1: import storage\.log as something"):
        _installed("import storage.log\nprint(storage.log)")


def test_names_of_modules_in_text_are_refused() -> None:
    with pytest.raises(UnpackableError, match=r"line 1: 'storage\.log' has another name"):
        _installed('MODULE = "storage.log"')
    for text in (
        'KEY = "broker.id"',
        'usage_name("storage.log")',
        '__name__.removesuffix("broker.app")',
    ):
        assert _installed(text) == text


def test_a_job_that_is_run_as_a_file_looks_one_folder_further_up() -> None:
    line = "sys.path.insert(0, str(Path(__file__).resolve().parents[{}]))"
    assert _installed(line.format(2)) == line.format(3)


def test_project_names_the_modules_of_the_wheel_and_keeps_everything_else() -> None:
    text = '[project]\nname = "broker"\n[project.scripts]\nrun = "broker.command:main"\n'
    made = project(text + "\n[tool.x]\na = 1\n", ["broker"])
    assert 'name = "broker"' in made
    assert 'run = "kafka_broker_python.broker.command:main"' in made
    assert "[tool.x]" not in made


def test_public_names_are_those_in_all_or_else_the_defined_ones() -> None:
    assert public_names('__all__ = ["b", "a"]\ndef c(): ...') == ["a", "b"]
    text = "from x import A as A, B\nclass C: ...\nD = 1\n_E = 2\nF: int = 3\nimport os"
    assert public_names(text) == ["A", "C", "D", "F"]


def test_short_names_run_or_reexport_the_modules_of_the_long_ones(tmp_path: Path) -> None:
    for path in ("__main__.py", "node/__main__.py", "app.py"):
        (tmp_path / "broker" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "broker" / path).write_text("")
    (tmp_path / "broker/testing.py").write_text("from x import Broker as Broker")
    made = dict(aliases(tmp_path))
    run = 'runpy.run_module("kafka_broker_python.broker.node", run_name="__main__"'
    assert run in made["broker/node/__main__.py"]
    assert "broker/app.py" not in made
    handing_out = "from kafka_broker_python.broker.testing import (\n    Broker as Broker,\n)"
    assert handing_out in made["broker/testing.py"]
