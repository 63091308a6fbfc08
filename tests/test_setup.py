"""The promises of README, Makefile, pyproject.toml and requirements/ to each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STEPS = ("compile", "wheel", "docs", "check", "test", "test-compiled", "test-slow")
GROUPS = {"broker": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}


def pinned(*groups: str) -> dict[str, str]:
    lines = [
        line
        for group in groups
        for line in (ROOT / "requirements" / f"{group}.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    return dict(line.split("==") for line in lines)


@pytest.mark.parametrize("group", GROUPS)
def test_everything_the_project_asks_for_is_pinned_to_a_version_it_accepts(group: str) -> None:
    versions = pinned(*GROUPS)
    for requirement in map(Requirement, GROUPS[group]):
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}: make lock"


def test_examples_pin_nothing_that_the_broker_pins() -> None:
    assert pinned("examples").keys().isdisjoint(pinned("broker"))


def test_the_docs_requirements_agree_with_all_others() -> None:
    docs = pinned("docs")
    assert docs.keys().isdisjoint(pinned("broker"))
    for group in ("spark", "compiled", "dev", "kerberos"):
        others = pinned(group)
        shared = docs.keys() & others.keys()
        assert {name: docs[name] for name in shared} == {name: others[name] for name in shared}


def test_the_broker_brings_neither_spark_nor_a_test_tool() -> None:
    heavy = {"pyspark", "py4j", "pandas", "matplotlib", "pytest", "mypy", "hypothesis"}
    assert heavy.isdisjoint(pinned("broker"))


def test_every_make_target_that_is_written_about_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / ".ci" / "run"]
    named = {
        target
        for page in pages
        for target in re.findall(
            r"[`$] ?make ([a-z]+(?:-[a-z]+)?)\b", page.read_text(encoding="utf-8")
        )
    }
    assert named <= targets


def test_make_alone_lists_every_target_with_a_line() -> None:
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in (
        "run",
        "unit",
        "test",
        "test-slow",
        "surroundings",
        "test-all",
        "check",
        "pipeline",
        "bench",
        "docs",
        "reference",
    ):
        assert re.search(rf"^  make {target} +\S.*$", listed, re.MULTILINE)


OLD_PYTHON = '#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2 && exit 0\nexit 1\n'
PYENV_SHIM = """#!/bin/sh
printf 'pyenv: command not found\\n\\nIt exists in these Python versions:\\n  3.13.1\\n' >&2
exit 127
"""


def told_by_setup(tmp_path: Path, pythons: dict[str, str]) -> str:
    """Run setup in a clone where these are the Pythons there are; return what it says."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "dirname", "cat", "cksum", "tr", "sed", "id"):
        (programs / name).symlink_to(Path("/usr/bin") / name)
    for name, text in pythons.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    clone = tmp_path / "clone"
    (clone / "scripts").mkdir(parents=True)
    (clone / "requirements").symlink_to(ROOT / "requirements")
    setup = clone / "scripts" / "setup"
    setup.write_text((ROOT / "scripts" / "setup").read_text(encoding="utf-8"))
    told = subprocess.run(
        ["/bin/sh", setup, "broker"],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    return told.stderr


def test_an_old_python_is_reported_in_one_line(tmp_path: Path) -> None:
    told = told_by_setup(tmp_path, {"python3": OLD_PYTHON})
    assert "Python 3.11 or newer is needed, and python3 is Python 3.9.2: name one" in told


def test_an_inactive_pyenv_shim_is_no_python(tmp_path: Path) -> None:
    told = told_by_setup(tmp_path, {"python3": OLD_PYTHON, "python3.13": PYENV_SHIM})
    assert "python3 is Python 3.9.2: name one" in told


def test_a_missing_python_is_reported_in_one_line(tmp_path: Path) -> None:
    told = told_by_setup(tmp_path, {"python3.12": PYENV_SHIM})
    assert "Python 3.11 or newer is needed, and there is none: name one" in told


def test_ci_runs_what_make_test_runs() -> None:
    steps = re.findall(r"\bstep ([a-z-]+)", (ROOT / ".ci" / "run").read_text())
    assert steps == list(STEPS)


@pytest.mark.parametrize("failing", [*STEPS, None])
def test_ci_fails_if_and_only_if_one_of_its_steps_does(tmp_path: Path, failing: str | None) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    rules = [f"{name}:\n\t@{'false' if name == failing else 'true'}\n" for name in STEPS]
    (tmp_path / "Makefile").write_text("".join(rules))
    done = subprocess.run([".ci/run"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is (failing is None)
    assert f"make {failing}: done" not in done.stdout
