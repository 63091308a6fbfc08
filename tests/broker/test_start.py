"""The command line, and starts that must fail: exit code 1 and one line that says why."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import socket
from typing import TYPE_CHECKING, NoReturn

import pytest

from broker.__main__ import main
from broker.app import Broker
from broker.cluster.admission import StartAbandonedError
from broker.runtime.clock import SystemClock
from broker.startup import logs
from broker.startup.disk import load_logs
from controller.brokers.registrar import Registrar
from controller.metadata_store.embedded_store import JOURNAL_NAME, EmbeddedStore
from controller.metadata_store.store import StoreUnavailableError
from storage.errors import LogDirectoryError
from tests.storage.produced import SMALL, TOPIC_ID, append, batch, crash, open_directories
from tests.support.brokers.broker_process import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from broker.startup.addresses import Addresses
    from broker.startup.parts import Parts

    Start = Callable[..., str]


@pytest.fixture
def start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Start:
    """Start a broker that must refuse; return its one line (errors before it are `logged`)."""

    def run(*overrides: str, properties: str = "", logged: Sequence[str] = ()) -> str:
        caplog.clear()
        config = tmp_path / "server.properties"
        config.write_text(
            f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\n"
            + properties
        )
        arguments = [word for override in overrides for word in ("--override", override)]
        assert main(["--config", str(config), *arguments]) == 1
        errors = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        assert [error.partition(";")[0] for error in errors] == list(logged)
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run


def stop_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make brokers stop as soon as they serve."""
    serve = Broker._serve

    async def serve_and_stop(broker: Broker, addresses: Addresses, parts: Parts) -> None:
        await serve(broker, addresses, parts)
        broker.stop()

    monkeypatch.setattr(Broker, "_serve", serve_and_stop)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log directory that a broker 0 has used and closed in order."""
    with monkeypatch.context() as patch:
        stop_at_once(patch)
        config = tmp_path / "first.properties"
        config.write_text(
            f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/data\n"
        )
        assert main(["--config", str(config)]) == 0
    return tmp_path / "data"


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])

    assert left.value.code == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--config", "--override", "--version", "--log-level"))


def test_a_misspelt_option_is_no_abbreviation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--config", "x", "--overrid", "port=1"])

    assert "unrecognized arguments: --overrid" in capsys.readouterr().err


def test_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])

    assert left.value.code == 0
    assert re.fullmatch(r"kafka-broker-python \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.properties"

    assert main(["--config", str(path)]) == 1

    assert capsys.readouterr().err == f"{path}: cannot be read: No such file or directory\n"


def test_malformed_value_has_file_and_line(start: Start, tmp_path: Path) -> None:
    line = start(properties="\nnum.partitions=many\n")

    assert line.startswith(f"{tmp_path}/server.properties:5: ")
    assert "num.partitions" in line
    assert "many" in line


def test_a_mistyped_key_is_warned_of_with_a_suggestion(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop_at_once(monkeypatch)
    config = tmp_path / "typo.properties"
    config.write_text(f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={data}\nnum.partitons=2\n")

    assert main(["--config", str(config)]) == 0

    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == [
        f"{config}:3: num.partitons is not a configuration key; did you mean num.partitions?"
    ]


def test_override_without_value_is_refused(start: Start) -> None:
    assert start("num.partitions") == ("--override num.partitions: expected KEY=VALUE")


def test_port_in_use_is_named(start: Start) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        line = start(f"listeners=PLAINTEXT://127.0.0.1:{port}")

    assert line == (
        f"--override: listeners: listener PLAINTEXT: 127.0.0.1:{port} is already in use"
    )


def test_host_that_is_not_ours_is_refused(start: Start) -> None:
    port = free_port()

    line = start(f"listeners=PLAINTEXT://192.0.2.1:{port}")

    assert line == (
        "--override: listeners: listener PLAINTEXT: "
        f"cannot listen on 192.0.2.1:{port}: cannot assign requested address"
    )


def test_host_without_an_address_is_refused(start: Start) -> None:
    line = start("listeners=PLAINTEXT://no-such-host.invalid:9092")

    assert line.startswith(
        "--override: listeners: listener PLAINTEXT: "
        "cannot listen on no-such-host.invalid:9092: no address is known for no"
    )


def test_line_of_the_file_with_a_listener_on_no_interface_is_named(
    start: Start, tmp_path: Path
) -> None:
    line = start(properties="listeners=PLAINTEXT://[::1%nosuch]:9192\n")

    assert line.endswith(
        f"{tmp_path}/server.properties:4: listeners: listener PLAINTEXT: "
        "cannot listen on [::1%nosuch]:9192: there is no interface nosuch"
    )


def test_listener_with_tls_but_without_a_certificate_is_refused(start: Start) -> None:
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()},SSL://127.0.0.1:{free_port()}"

    assert start(f"listeners={listeners}") == (
        "listener SSL: ssl.keystore.location is not set: a listener with TLS needs a certificate"
    )


def test_listener_with_sasl_but_without_users_is_refused(start: Start) -> None:
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()},SASL_PLAINTEXT://127.0.0.1:{free_port()}"
    key = "listener.name.sasl_plaintext.plain.sasl.jaas.config"

    line = start(f"listeners={listeners}", "sasl.enabled.mechanisms=CRAM-MD5")
    assert line.startswith("SASL mechanism CRAM-MD5 of listener SASL_PLAINTEXT is none of: ")
    line = start(f"listeners={listeners}", "sasl.enabled.mechanisms=PLAIN")
    assert line.startswith(f"{key} is missing: it names the login module of PLAIN")
    line = start(f"listeners={listeners}", "sasl.enabled.mechanisms=PLAIN", f"{key}=a.b.C hidden;")
    assert line == f"{key}: Invalid login module control flag in JAAS config"


def test_brokers_log_in_by_a_mechanism_that_is_offered(start: Start) -> None:
    sasl = f"SASL_PLAINTEXT://127.0.0.1:{free_port()}"
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=hidden;"

    line = start(
        f"listeners={sasl}",
        "security.inter.broker.protocol=SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={login}",
    )

    assert line.startswith("sasl.mechanism.inter.broker.protocol must be included in")


def test_second_broker_on_a_directory_is_refused(start: Start, tmp_path: Path) -> None:
    first = open_directories(tmp_path / "data")

    line = start()

    assert f"another broker is using the log directory {tmp_path}/data" in line
    first.close()


def test_unusable_log_directory_is_named_with_the_reason(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    for path, reason in {
        f"{tmp_path}/file": "Not a directory",
        f"{tmp_path}/file/below": "Not a directory",
        "/proc/nobody-may-write-here": "No such file or directory",
    }.items():
        line = start(f"log.dirs={path}")
        assert line == f"no log directory can be used: log directory {path}: {reason}"


def test_other_broker_id_is_refused_and_nothing_changed(start: Start, data: Path) -> None:
    before = {path.name: path.read_bytes() for path in data.iterdir() if path.is_file()}

    line = start("broker.id=7")

    assert "broker.id is 7, but meta.properties in the log directories says 0" in line
    after = {path.name: path.read_bytes() for path in data.iterdir() if path.is_file()}
    del before[JOURNAL_NAME], after[JOURNAL_NAME]
    assert after == before


@pytest.mark.parametrize("content", [b"junk", b"\xff\xfe\x00"])
def test_damaged_meta_properties_are_named(start: Start, data: Path, content: bytes) -> None:
    (data / "meta.properties").write_bytes(content)

    assert f"{data}/meta.properties is damaged" in start()


def test_damaged_metadata_is_named_and_left_alone(start: Start, data: Path) -> None:
    (data / JOURNAL_NAME).write_bytes(b"junk" * 100)

    line = start()

    assert line.startswith(f"{data}: {JOURNAL_NAME} is damaged: ")
    assert (data / JOURNAL_NAME).read_bytes() == b"junk" * 100


def test_damaged_checkpoint_is_a_warning(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (data / "recovery-point-offset-checkpoint").write_bytes(b"\xff" * 50)
    stop_at_once(monkeypatch)

    assert main(["--config", str(tmp_path / "first.properties")]) == 0

    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "recovery-point-offset-checkpoint is damaged" in warnings[0]


def test_lost_directory_with_the_metadata_is_not_replaced_by_an_empty_one(
    start: Start, data: Path, tmp_path: Path
) -> None:
    """Given two log directories, when the one with the metadata cannot be used, then refuse."""
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(data / "meta.properties", other)
    shutil.rmtree(data)
    data.write_text("the disk is gone")

    line = start(f"log.dirs={data},{other}", logged=[f"log directory {data}: Not a directory"])

    assert f"it must be in {data}, which cannot be" in line
    assert not (other / JOURNAL_NAME).exists()


def test_metadata_stays_where_it_is_when_a_directory_is_added(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at_once(monkeypatch)
    config = tmp_path / "two.properties"
    config.write_text(
        f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path}/new,{data}\n"
    )

    assert main(["--config", str(config)]) == 0

    assert (tmp_path / "new" / "meta.properties").exists()
    assert not (tmp_path / "new" / JOURNAL_NAME).exists()


def test_stop_during_recovery_leaves_the_rest_to_the_next_start(tmp_path: Path) -> None:
    directories = open_directories(tmp_path)
    directories.load(lambda _topic: SMALL)
    for partition in range(3):
        log = directories.create("flights", partition, TOPIC_ID, SMALL)
        append(log, batch(10))
    crash(directories)
    asked = iter([False, False, True])

    interrupted = open_directories(tmp_path)
    with pytest.raises(StartAbandonedError, match="stopped after loading 2 of 3 logs"):
        load_logs(interrupted, lambda _topic: SMALL, SystemClock(), lambda: next(asked))
    interrupted.close()

    again = open_directories(tmp_path)
    report = load_logs(again, lambda _topic: SMALL, SystemClock(), lambda: False)
    assert report.unclean_directories == [str(tmp_path)]
    assert [log.log_end_offset for log in again] == [10, 10, 10]


def test_a_broker_stopped_while_loading_exits_cleanly(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def abandon(*_: object) -> NoReturn:
        raise StartAbandonedError("stopped after loading 1 of 2 logs")

    monkeypatch.setattr(logs, "load_logs", abandon)

    assert main(["--config", str(tmp_path / "first.properties")]) == 0

    assert "stopped after loading 1 of 2 logs" in caplog.messages
    assert (data / ".kafka_cleanshutdown").exists(), "of the stop before; nothing was loaded"


def test_logs_are_closed_cleanly_when_the_metadata_store_fails_to_close(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_store: EmbeddedStore) -> None:
        raise StoreUnavailableError("/", "No space left on device")

    stop_at_once(monkeypatch)
    monkeypatch.setattr(EmbeddedStore, "close", fail)

    assert main(["--config", str(tmp_path / "first.properties")]) == 0

    assert (data / ".kafka_cleanshutdown").exists()
    (warning,) = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert "No space left on device" in warning


@pytest.mark.timeout(120)
def test_work_that_never_ends_does_not_hold_up_the_stop(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = Broker._serve

    async def serve_with_work_and_stop(broker: Broker, addresses: Addresses, parts: Parts) -> None:
        await serve(broker, addresses, parts)
        parts.services.spawn(asyncio.Event().wait(), "endless work")
        broker.stop()

    monkeypatch.setattr(Broker, "_serve", serve_with_work_and_stop)

    assert main(["--config", str(tmp_path / "first.properties")]) == 0

    assert (data / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailableError("/brokers/ids/0", "No space left on device"),
        LogDirectoryError("/data", "No space left on device"),
    ],
)
def test_disk_that_fails_while_the_broker_starts_is_one_line(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(Registrar, "ensure", fail)

    assert "No space left on device" in start()
