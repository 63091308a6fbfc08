"""SIGTERM to the whole process group of a job: Spark's JVM ends of it as well."""

from __future__ import annotations

import os
import signal
from typing import Any, cast

import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from spark_jobs.errors import EXIT_BY_SIGNAL, exit_code_of
from spark_jobs.streams import run_to_end


class Query:
    """Of a JVM that is gone; perhaps because of a signal that came just now."""

    def __init__(self, signal_number: int = 0) -> None:
        self._signal_number = signal_number

    def __getattr__(self, name: str) -> Any:
        if self._signal_number:
            os.kill(os.getpid(), self._signal_number)
        raise Py4JNetworkError("Answer from Java side is empty")


def test_a_job_whose_jvm_ended_of_the_same_signal_was_interrupted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    query = cast("Any", Query(signal.SIGTERM))

    assert exit_code_of(lambda: len(run_to_end([query]))) == EXIT_BY_SIGNAL + signal.SIGTERM
    assert capsys.readouterr().err == "interrupted\n"


def test_a_jvm_that_ends_by_itself_is_an_error() -> None:
    with pytest.raises(Py4JNetworkError):
        run_to_end([cast("Any", Query())])
