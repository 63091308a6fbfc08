"""Signals that come while a supervisor is starting are heard once it can, and not lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.jars import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

SECONDS = 60


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGHUP,),
        (signal.SIGTERM,),
        (signal.SIGINT,),
        (signal.SIGUSR1, signal.SIGTERM),
    ],
)
def test_a_signal_during_the_start_ends_or_restarts_in_order(
    numbers: tuple[signal.Signals, ...], tmp_path: Path
) -> None:
    """The supervisor first reads its properties from a pipe, and so is held up while it starts."""
    pipe, file = tmp_path / "node.properties", tmp_path / "file"
    os.mkfifo(pipe)
    keys = {
        "broker.processes": "2",
        "broker.id": "1",
        "broker.processes.directory": str(tmp_path / "node"),
        "log.dirs": str(tmp_path / "logs"),
        "zookeeper.connect": "127.0.0.1:1",
    }
    text = "".join(f"{name}={value}\n" for name, value in keys.items())
    file.write_text(text)
    heard = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # it is ignored under nohup
    program = f"import runpy, signal; {heard}; runpy.run_module('broker.node', alter_sys=True, "
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}run_name='__main__')", "--config", str(pipe)],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    ) as supervisor:
        with pipe.open("w") as written:  # it has begun to read now
            for number in numbers:
                supervisor.send_signal(number)
            file.replace(pipe)
            written.write(text)
        _, said = supervisor.communicate(timeout=SECONDS)

    assert supervisor.returncode == 0, said
    assert f"{numbers[-1].name}: the brokers stop, one after the other" in said
