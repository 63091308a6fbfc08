"""The wheel, built once, and an environment in which nothing of ours is installed but that."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 120
HOOK = """
import sys
from scripts.wheel import backend
print(getattr(backend, sys.argv[1])(sys.argv[2]))
"""


@pytest.fixture(scope="session")
def built() -> Callable[[str, Path], Path]:
    """Build a `wheel` or `sdist` into a directory, as a front end would; gives its path."""

    def build(kind: str, directory: Path, root: Path = REPOSITORY) -> Path:
        directory.mkdir(exist_ok=True)
        command = [sys.executable, "-c", HOOK, f"build_{kind}", str(directory)]
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return directory / done.stdout.splitlines()[-1]

    return build


@pytest.fixture(scope="session")
def wheel(built: Callable[[str, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a virtual environment with the wheel, and what it needs from ours."""
    directory = tmp_path_factory.mktemp("environment")
    _run("-m", "venv", "--without-pip", str(directory))
    python = directory / "bin" / "python"
    options = ["--no-deps", "--no-index", "--no-compile", "--quiet", "--disable-pip-version-check"]
    _run("-m", "pip", "--python", str(python), "install", *options, str(wheel))
    places = directory.glob("lib/python*/site-packages")
    next(places).joinpath("others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory


def _run(*arguments: str) -> None:
    command = [sys.executable, *arguments]
    subprocess.run(command, cwd="/", timeout=SECONDS, check=True)
