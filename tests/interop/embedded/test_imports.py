"""Modules imported by a start: each one delays the first use of a broker."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.support.jars import REPOSITORY

OUR_MODULES = 785
"""Modules that a start imports, and a few more. An increase has to be worth it: 0.3 ms each."""
OURS = ("broker", "compiled", "config", "controller", "coordinator", "protocol", "storage")
FOR_FEW = (
    "broker.key_index.endpoint",
    "broker.metrics.broker_metrics",
    "broker.node.supervisor",
    "broker.security.oauth",
    "broker.startup.zookeeper_security",
    "controller.zookeeper",
    "cryptography",
    "google.protobuf",
    "gssapi",
    "hypothesis",
    "jwt",
    "kazoo",
    "multiprocessing",
    "numpy",
    "opentelemetry",
    "prometheus_client",
    "pytest",
    "re2",
    "rich",
    "setuptools",
    "storage.compaction.worker",
    "storage.key_index.index_builder",
    "storage.key_index.job",
    "tomllib",
)
"""Modules needed only by certain configurations, or after the start."""
STARTED = """
import sys
from broker.testing import EmbeddedBroker
with EmbeddedBroker():
    print(*sys.modules)
"""


@pytest.fixture(scope="module")
def started() -> set[str]:
    return _printed(STARTED)


def test_a_start_imports_no_rarely_needed_module(started: set[str]) -> None:
    assert "broker.app" in started
    assert not {one for one in started for few in FOR_FEW if f"{one}.".startswith(f"{few}.")}


def test_every_rarely_needed_module_exists() -> None:
    assert not [few for few in FOR_FEW if few.startswith(OURS) and not find_spec(few)]


def test_modules_imported_by_a_start_are_bounded(started: set[str]) -> None:
    assert len([one for one in started if one.partition(".")[0] in OURS]) <= OUR_MODULES


def test_importing_broker_testing_does_not_import_the_broker() -> None:
    imported = _printed("import sys, broker.testing; print(*sys.modules)")
    assert "broker.testing" in imported
    assert not imported & {"broker.app", "broker.handlers", "broker.startup", "storage.log"}


def test_process_isolation_does_not_import_the_broker() -> None:
    there = STARTED.replace("EmbeddedBroker()", "EmbeddedBroker(isolation='process')")
    assert "broker.app" not in _printed(there)


def _printed(script: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={"PYTHONPATH": str(REPOSITORY), "BROKER_COMPILED": "no"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(ended.stdout.split())
