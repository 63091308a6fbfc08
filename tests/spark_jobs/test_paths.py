"""Places that a job cannot write to are told before it does anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError
from spark_jobs.paths import require_directory, require_file, writing
from spark_jobs.pipeline.pipeline import main


def test_directories_are_made(tmp_path: Path) -> None:
    require_directory("--work-dir", tmp_path / "a" / "b")
    require_file("--picture", tmp_path / "c" / "d.png")
    assert (tmp_path / "a" / "b").is_dir()
    assert (tmp_path / "c").is_dir()
    assert not (tmp_path / "c" / "d.png").exists()


def test_what_is_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place, reason in {
        tmp_path / "file": "is not a directory",
        tmp_path / "file" / "below": "cannot be made: not a directory",
        Path("/proc/nowhere"): "cannot be made: no such file or directory",
    }.items():
        with pytest.raises(BadOptionError) as raised:
            require_directory("--work-dir", place)
        assert str(raised.value) == f"--work-dir: {place} {reason}"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadOptionError, match="is a directory, expected a file"):
        require_file("--picture", tmp_path)


def test_a_failure_of_the_network_is_none_of_the_file() -> None:
    with pytest.raises(ConnectionResetError), writing("--output", Path("page.html")):
        raise ConnectionResetError


@pytest.mark.process
@pytest.mark.parametrize("flag", ["--work-dir", "--picture", "--spark-log", "--page"])
def test_the_pipeline_looks_first(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {"--work-dir": f"{tmp_path}/work", "--picture": f"{tmp_path}/p.png"}
    arguments[flag] = "/proc/nowhere/x.png"
    words = [word for pair in arguments.items() for word in pair]
    assert main(words) == EXIT_BAD_OPTION
    assert capsys.readouterr().err.startswith(f"error: {flag}: /proc/nowhere")
