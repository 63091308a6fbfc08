"""Packages that the tests need from registries: fetched, compiled once beforehand, and logged."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.interop.go import franz_go
from tests.support import class_archives, downloads, go_programs, jars

MAVEN = """#!/bin/sh
echo mvn >>"$CALLS"
[ ! -e "$CALLS.fails" ] || { echo '[ERROR] Could not resolve: no network'; exit 1; }
mkdir -p libs
"""
JAVAC = """#!/bin/sh
echo javac >>"$CALLS"
"""
OLD_GO = """#!/bin/sh
echo go1.19.8
"""
GO = f"""#!/bin/sh
case $1 in
    env) echo go{go_programs.pinned()["go"]} ;;
    build) [ ! -e "$CALLS.fails" ] || {{ echo 'no network' >&2; exit 1; }}
        echo "go $GOTOOLCHAIN" >>"$CALLS"
        for last; do [ "$before" = -o ] && touch "$last"; before=$last; done ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have an empty cache, Maven and javac that note their calls in this file, and an old Go."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("mvn", MAVEN), ("javac", JAVAC), ("go", OLD_GO)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr(jars, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(downloads, "ARCHIVED", ())
    (tmp_path / "cache").mkdir()
    downloads.packages_stamp().write_text(f"{downloads.SPARK_PACKAGES}\n")
    return tmp_path / "calls"


def fetched() -> list[str]:
    """Fetch; return what was said."""
    said: list[str] = []
    downloads.fetch(said.append)
    return said


def test_all_is_fetched_and_compiled_and_then_nothing_more(calls: Path) -> None:
    programs = sum(len(versions) for versions in jars.PROGRAMS.values())

    said = fetched()
    assert calls.read_text().split() == ["mvn"] * len(jars.ARTIFACTS) + ["javac"] * programs
    assert len(said) == len(jars.ARTIFACTS) + programs
    assert said[0] == f"Fetching Apache Kafka {jars.KAFKA_4}"
    assert jars.libs(jars.KAFKA_3).is_dir()

    calls.unlink()
    assert fetched() == []
    assert not calls.exists()


def test_a_failed_download_is_reported_in_one_line_and_retried(calls: Path) -> None:
    failing = calls.with_name("calls.fails")
    failing.touch()
    with pytest.raises(jars.JarsUnavailableError, match=r"Maven Central: \[ERROR\] Could not"):
        fetched()
    failing.unlink()
    assert len(fetched()) > len(jars.ARTIFACTS)


def test_a_program_that_was_changed_is_compiled_again(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "Program.java"
    source.write_text("class Program {}")
    monkeypatch.setattr(jars, "PROGRAMS", {str(source): (jars.KAFKA_4,)})
    fetched()
    source.write_text("class Program { int more; }")
    assert fetched() == [f"Compiling Program.java against {jars.KAFKA_4}"]
    assert jars.compiled(jars.KAFKA_4, source).is_dir()


def test_packages_whose_jars_are_gone_are_fetched_again(calls: Path) -> None:
    fetched()
    downloads.packages_stamp().write_text(f"{downloads.SPARK_PACKAGES}\n{calls}.jar\n")
    [(what, _)] = downloads.missing()
    assert what == f"Fetching {downloads.SPARK_PACKAGES}"


def test_a_missing_or_old_go_skips_its_tests(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = go_programs.pinned()["go"]
    assert go_programs.why_not() == f"Go 1.19.8 is older than {wanted}"
    with pytest.raises(pytest.skip.Exception, match=r"franz-go: Go 1\.19\.8 is older"):
        franz_go.run_scenarios("nowhere:1", "acks")

    monkeypatch.setenv("PATH", str(calls.parent))
    assert go_programs.why_not() == "Go is not installed"


def test_go_clients_are_built_once_where_go_is_new_enough(calls: Path) -> None:
    fetched()
    (calls.parent / "bin" / "go").write_text(GO)
    failing = calls.with_name("calls.fails")
    failing.touch()
    with pytest.raises(jars.JarsUnavailableError, match="cannot be built: no network"):
        fetched()
    with pytest.raises(jars.JarsUnavailableError, match=r"python -m tests\.support\.downloads"):
        franz_go.run_scenarios("nowhere:1", "acks")
    failing.unlink()
    calls.unlink()

    assert fetched() == ["Building franz-go's clients"]
    assert calls.read_text() == "go local\n"
    assert fetched() == []


class EndingBroker:
    """A broker whose JVM makes an archive as it ends, or cannot."""

    def __init__(self, *, makes: bool) -> None:
        self.command = ["java", "kafka.Kafka"]
        self._makes = makes

    def start(self) -> None:
        pass

    def stop(self) -> None:
        option = self.command[1].removeprefix("-XX:ArchiveClassesAtExit=")
        if self._makes:
            Path(option).write_text("classes")


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("makes", [True, False])
def test_classes_are_archived_once_for_the_jars_that_are_there(*, makes: bool) -> None:
    version = jars.KAFKA_4
    fetched()
    assert not class_archives.is_made(version)
    assert class_archives.flags(version) == ()

    class_archives.make(version, EndingBroker(makes=makes))  # type: ignore[arg-type]
    assert class_archives.is_made(version)
    option = f"-XX:SharedArchiveFile={class_archives.path(version)}"
    assert (option in class_archives.flags(version)) is makes

    jars.resolved_stamp(version).touch()
    assert not class_archives.is_made(version)


@pytest.mark.usefixtures("calls")
def test_a_test_that_lacks_jars_fails_at_once_instead_of_fetching_them() -> None:
    with pytest.raises(jars.JarsUnavailableError, match=r"python -m tests\.support\.downloads"):
        jars.classpath(jars.KAFKA_4)
    with pytest.raises(jars.JarsUnavailableError, match=r"python -m tests\.support\.downloads"):
        jars.compiled(jars.KAFKA_4, Path(downloads.__file__).with_name("ToolRunner.java"))


def test_every_java_program_is_compiled_before_the_tests() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.java"],
        cwd=jars.REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(listed.stdout.split()) == set(jars.PROGRAMS)
