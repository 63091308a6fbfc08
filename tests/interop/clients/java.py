"""kafka-clients: Java programs that run named scenarios and print one line for each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import class_archives, jars
from tests.support.tools import FLAGS

SOURCES = Path(__file__).parents[1] / "java"
RUN_SECONDS = 500
ERROR_CHARACTERS = 5000

each_version = pytest.mark.parametrize(
    "version",
    [
        jars.CLIENTS_2,
        pytest.param(jars.KAFKA_3, marks=pytest.mark.slow),
        pytest.param(jars.KAFKA_4_3, marks=pytest.mark.slow),
        jars.KAFKA_4,
    ],
)


def run_scenarios(
    version: str, program: str, bootstrap: str, scenarios: list[str]
) -> dict[str, str]:
    """Run `program` in one JVM; return what each scenario printed, and `stderr`."""
    return run_program(version, program, [bootstrap, f"java-{version}-", *scenarios])


def run_program(version: str, program: str, arguments: list[str]) -> dict[str, str]:
    """Run `program`, which prints lines `name=value`; return these, and `stderr`."""
    classes = jars.compiled(version, SOURCES / f"{program}.java")
    classpath = f"{jars.classpath(version)}:{classes}"
    flags = (*FLAGS, *class_archives.flags(version))
    command = [jars.java_home_tool("java"), *flags, "-cp", classpath, program]
    try:
        outcome = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        output, errors = outcome.stdout, outcome.stderr
    except subprocess.TimeoutExpired as late:
        output, errors = late.stdout or b"", late.stderr or b""
    lines = [line.partition("=") for line in output.decode().splitlines()]
    said = {"stderr": errors.decode()[-ERROR_CHARACTERS:]}
    return {name: value for name, _, value in lines} | said
