"""A broker of one's own: this repository's, as a process, for as long as it is needed.

The jobs import nothing of the broker; they start it as a person would, by its command line.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.errors import JobError
from spark_jobs.program import BROKER, BROKER_CONFIG, CODE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS = 30.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05


@contextmanager
def local_broker(directory: Path) -> Iterator[str]:
    """Run a broker on a free port with its data under `directory`; give its HOST:PORT."""
    port = _free_port()
    data, log = (directory / "data").absolute(), (directory / "broker.log").absolute()
    data.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", BROKER, "--config", str(BROKER_CONFIG)]
    for override in (f"listeners=PLAINTEXT://{HOST}:{port}", f"log.dirs={data}"):
        command += ["--override", override]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - this repository's own broker
            [*_dying_with_us(), *command],
            cwd=CODE,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the job, which then stops its broker
        )
    try:
        _wait_until_listening(process, port, log)
        yield f"{HOST}:{port}"
    finally:
        _stop(process)


def _dying_with_us() -> list[str]:
    """Return the start of a command line for a process that ends when this one is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM"] if setpriv else []


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((HOST, port), POLL_SECONDS).close()
        except OSError:
            pass
        else:
            return
        if process.poll() is not None:
            raise JobError(f"the broker did not start: {_last_line(log)} (all of it: {log})")
        if time.monotonic() > deadline:
            raise JobError(f"the broker does not listen after {START_SECONDS:.0f} s; see {log}")
        time.sleep(POLL_SECONDS)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
