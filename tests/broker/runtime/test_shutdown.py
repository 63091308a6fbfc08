"""The logs are closed despite a failing step of the stop, or of any stage of the start."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from broker import app
from broker.__main__ import main
from broker.app import Broker
from broker.cluster.cluster import Cluster
from broker.coordinators.groups import GroupCoordinators
from broker.coordinators.transactions import TransactionCoordinators
from broker.maintenance.housekeeping import Housekeeping
from broker.maintenance.log_cleaner import LogCleaner
from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.topic_configs import TopicConfigs
from broker.metrics.optional_metrics import NoMetrics
from broker.network.listener import Listeners
from broker.runtime.compute_pool import ComputePool
from broker.runtime.shutdown import UndoStack
from broker.runtime.supervision import Supervision
from broker.runtime.timers import Timers
from broker.startup import addresses, disk, logs, metadata
from controller.brokers.registrar import Registrar
from controller.metadata_store import embedded_store
from controller.metadata_store.embedded_store import EmbeddedStore
from controller.metadata_store.store import StoreUnavailableError
from storage.directory.directories import LogDirectories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.startup.addresses import Addresses
    from broker.startup.parts import Parts

STEPS: list[tuple[type, str]] = [
    (Timers, "close"),
    (Listeners, "close"),
    (NoMetrics, "close"),
    (Housekeeping, "stop"),
    (Cluster, "stop"),
    (TransactionCoordinators, "stop"),
    (GroupCoordinators, "stop"),
    (Supervision, "close"),
    (EmbeddedStore, "close"),
    (ComputePool, "close"),
    (ThreadPoolExecutor, "shutdown"),
]

STAGES: list[tuple[Any, str]] = [
    (app, "take_addresses"),
    (addresses, "configured_limits"),
    (logs, "open_directories"),
    (metadata, "open_store"),
    (embedded_store, "_load"),
    (disk, "create_skeleton"),
    (LogDirectories, "identify"),
    (TopicConfigs, "start"),
    (BrokerConfigs, "load"),
    (logs, "load_logs"),
    (LogDirectories, "load"),
    (app, "put_together"),
    (app, "configure"),
    (Registrar, "ensure"),
    (Cluster, "start"),
    (Broker, "_hear_from_controller"),
    (GroupCoordinators, "start"),
    (TransactionCoordinators, "start"),
    (Housekeeping, "start"),
    (LogCleaner, "start"),
    (NoMetrics, "serve"),
    (Listeners, "serve"),
]


def name_of(where: tuple[Any, str]) -> str:
    return f"{where[0].__name__}.{where[1]}"


class Run:
    """A broker on a directory, which stops as soon as it serves."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self._config = directory / "server.properties"
        self._config.write_text(
            f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={directory}/data\n"
        )
        self._mark = directory / "data" / ".kafka_cleanshutdown"
        serve = Broker._serve

        async def serve_and_stop(broker: Broker, addresses: Addresses, parts: Parts) -> None:
            await serve(broker, addresses, parts)
            broker.stop()

        monkeypatch.setattr(Broker, "_serve", serve_and_stop)

    @property
    def is_closed_in_order(self) -> bool:
        return self._mark.exists()

    def __call__(self) -> int:
        return main(["--config", str(self._config)])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def break_after(where: tuple[type, str], run: Run) -> None:
    """Make a method raise once it has done its work."""
    owner, name = where
    work: Callable[..., Any] = getattr(owner, name)

    def fail(*args: Any, **kwargs: Any) -> NoReturn:
        work(*args, **kwargs)
        raise RuntimeError("odd")

    async def fail_later(*args: Any) -> NoReturn:
        await work(*args)
        raise RuntimeError("odd")

    run.monkeypatch.setattr(owner, name, fail_later if asyncio.iscoroutinefunction(work) else fail)


@pytest.mark.parametrize("where", STEPS, ids=name_of)
def test_the_logs_are_closed_although_a_step_fails(
    run: Run, where: tuple[type, str], caplog: pytest.LogCaptureFixture
) -> None:
    with run.monkeypatch.context() as patch:
        run.monkeypatch = patch
        break_after(where, run)
        assert run() == 0

    assert run.is_closed_in_order
    failed = [one for one in caplog.records if one.exc_info and "failed, continuing" in one.message]
    assert failed
    assert {one.levelno for one in failed} == {logging.ERROR}


@pytest.mark.parametrize("where", STAGES, ids=name_of)
def test_a_start_that_breaks_leaves_logs_closed_and_free_for_the_next(
    run: Run, where: tuple[Any, str]
) -> None:
    assert run() == 0

    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("odd")

    with run.monkeypatch.context() as patch:
        patch.setattr(*where, fail)
        with pytest.raises(BaseExceptionGroup) as raised:
            run()

    assert raised.group_contains(RuntimeError, match="odd")
    assert run.is_closed_in_order
    assert run() == 0
    assert run.is_closed_in_order


def test_steps_are_taken_in_order_and_an_interruption_is_raised_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken: list[str] = []

    def step(name: str, error: BaseException | None = None) -> tuple[str, Callable[[], object]]:
        async def take() -> None:
            taken.append(name)
            if error is not None:
                raise error

        return name, take

    async def scenario() -> None:
        steps = [
            step("one", RuntimeError("odd")),
            step("two", asyncio.CancelledError()),
            step("three", StoreUnavailableError("/", "no disk")),
            ("four", lambda: taken.append("four")),
        ]
        undo = UndoStack()
        for name, take in reversed(steps):
            undo.push(name, take)
        with pytest.raises(asyncio.CancelledError):
            await undo.undo()

    asyncio.run(scenario())

    assert taken == ["one", "two", "three", "four"]
    assert [one.levelname for one in caplog.records] == ["ERROR", "WARNING"]
    assert "three failed, continuing: /: no disk" in caplog.text
