"""Paths of the tests' Go programs once they are built, and whether they can be.

Debian's Go is too old for what they need, so Go is installed by whoever wants these tests: where it
is missing, or older than a program's `go.mod` asks for, they are skipped. As with jars, all that
comes over a network comes by `tests.support.downloads`, before the first test.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support import jars

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FRANZ_GO = jars.REPOSITORY / "tests" / "interop" / "go"
"""A module of its own, whose `go.mod` and `go.sum` pin what it is built with."""

SUFFIXES = {".go", ".mod", ".sum"}
VERSION_SECONDS = 60


def why_not() -> str | None:
    """Say why no program can be built on this machine; None if it can."""
    go = shutil.which("go")
    if go is None:
        return "Go is not installed"
    outcome = subprocess.run(
        [go, "env", "GOVERSION"],
        capture_output=True,
        text=True,
        timeout=VERSION_SECONDS,
        check=False,
        env=environment(),
    )
    found, wanted = outcome.stdout.strip().removeprefix("go"), pinned()["go"]
    if _numbers(found) < _numbers(wanted):
        return f"Go {found or 'of an unknown version'} is older than {wanted}"
    return None


def pinned() -> dict[str, str]:
    """Return the version of Go, and of each module, that `go.mod` names."""
    text = (FRANZ_GO / "go.mod").read_text(encoding="utf-8")
    modules = re.findall(r"^\s+(\S+) v(\S+)", text, re.MULTILINE)
    return {"go": re.findall(r"^go (\S+)", text, re.MULTILINE)[0], **dict(modules)}


def environment() -> Mapping[str, str]:
    """Return what `go` is run with: it takes no other Go from the network than the one it is."""
    return {**os.environ, "GOTOOLCHAIN": "local"}


def program() -> Path:
    """Return where the program is, once it is built from its text of today."""
    digest = hashlib.sha256()
    for path in sorted(path for path in FRANZ_GO.iterdir() if path.suffix in SUFFIXES):
        digest.update(path.name.encode() + path.read_bytes())
    return jars.CACHE / "go" / digest.hexdigest()[:12] / "franz-go"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
