"""`make clean` removes what was built, and data lies where it does not look."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from config.properties import parse
from spark_jobs.jobs.catalogue import JOBS, job_module
from spark_jobs.options import Options

ROOT = Path(__file__).parents[1]
DATA = (
    "data/kafka/t-0/00000000000000000000.log",
    "data/spark_jobs/archive/__pycache__/part.parquet",
    "data/pipeline/own/checkpoint/route/offsets/0",
    # Where data lay by default before it lay in `data/`.
    "build/pipeline/own/data/t-0/00000000000000000000.log",
    "build/spark_jobs/checkpoint/route/offsets/0",
)
BUILT = (
    "build/apache/4.3.1/libs/kafka-clients-4.3.1.jar",
    "build/benchmarks/report.json",
    "build/lib/broker/app.py",
    "broker/__pycache__/app.cpython-311.pyc",
    ".pytest_cache/README.md",
)
KEPT = ("broker/app.py", ".venv/lib/__pycache__/a.pyc")


def cleaned(clone: Path, files: tuple[str, ...]) -> set[str]:
    """Run `make clean` in a clone that has these files besides; return which it leaves."""
    shutil.copy(ROOT / "Makefile", clone)
    for name in files:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text(name)
    subprocess.run(["make", "clean"], cwd=clone, capture_output=True, text=True, check=True)
    return {name for name in files if (clone / name).exists()}


def test_clean_leaves_data_and_removes_what_was_built(tmp_path: Path) -> None:
    assert cleaned(tmp_path, (*DATA, *BUILT, *KEPT)) == {*DATA, *KEPT}


def test_clean_leaves_no_empty_directory_of_builds(tmp_path: Path) -> None:
    assert cleaned(tmp_path, BUILT) == set()
    assert not (tmp_path / "build").exists()


def _with_subclasses(model: type[Options]) -> set[type[Options]]:
    return {model}.union(*(_with_subclasses(below) for below in model.__subclasses__()))


def test_default_paths_of_jobs_lie_in_data() -> None:
    for job in JOBS:
        job_module(job)
    defaults = {
        f"{model.__name__}.{name}": field.default
        for model in _with_subclasses(Options)
        for name, field in model.model_fields.items()
        if isinstance(field.default, Path)
    }
    assert {"StreamOptions.checkpoint", "ArchiveOptions.directory"} <= defaults.keys()
    assert {name for name, path in defaults.items() if path.parts[0] != "data"} == set()


@pytest.mark.parametrize(
    "path", [*(ROOT / "config").glob("*.properties")], ids=lambda path: path.name
)
def test_default_paths_of_brokers_lie_in_data(path: Path) -> None:
    properties = {entry.name: entry.value for entry in parse(path.read_text())}
    place = properties.get("log.dirs") or properties["dataDir"]
    assert Path(place).parts[0] == "data"
