"""franz-go: a Go program that runs named scenarios and prints one line for each."""

from __future__ import annotations

import subprocess

import pytest

from tests.support import go_programs
from tests.support.jars import JarsUnavailableError

RUN_SECONDS = 500
ERROR_CHARACTERS = 5000


def run_scenarios(bootstrap: str, *scenarios: str) -> dict[str, str]:
    """Run scenarios; return what each printed. Skips the test where Go cannot build them."""
    program = go_programs.program()
    if not program.is_file():
        reason = go_programs.why_not()
        if reason is not None:
            pytest.skip(f"franz-go: {reason}")
        message = "franz-go's clients are not built: `python -m tests.support.downloads`"
        raise JarsUnavailableError(message)
    outcome = subprocess.run(
        [str(program), bootstrap, "franz-go-", *scenarios],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr[-ERROR_CHARACTERS:]
    lines = [line.partition("=") for line in outcome.stdout.splitlines()]
    return {name: value for name, _, value in lines}
