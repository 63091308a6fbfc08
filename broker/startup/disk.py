"""Opening of a broker's data on disk at its start: log directories, metadata store, logs.

Every error there becomes a StartError with one line that has the error and the place.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from broker.cluster.admission import StartAbandonedError
from broker.metadata.auto_topics import internal_topic_configs
from broker.runtime.platform import ConnectError
from broker.startup.start_error import StartError
from controller.brokers.registration import create_skeleton, generate_broker_id, obtain_cluster_id
from controller.metadata_store.embedded_files import LocalStoreFiles
from controller.metadata_store.embedded_store import (
    JOURNAL_NAME,
    SNAPSHOT_NAME,
    DamagedStoreError,
    EmbeddedStore,
)
from controller.metadata_store.patience import Patience
from controller.metadata_store.store import StoreError
from controller.topics.topic_import import FoundPartition, adopt_topics
from controller.znodes import TOPICS
from protocol.uuids import draw_uuid, to_base64
from storage.directory.directories import LogDirectories
from storage.errors import DirectoryRefusedError, LogDirectoryError
from storage.log.log_settings import LogSettings
from storage.segment.file_names import parse_partition_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.runtime.clock import Clock
    from broker.runtime.platform import Platform
    from config.broker import BrokerConfig
    from config.topic import TopicConfig
    from controller.metadata_store.store import MetadataStore
    from storage.directory.directory_loader import LoadReport
    from storage.disk import Disk

logger = logging.getLogger(__name__)

PROGRESS_AFTER_MS = 500
"""Duration from which loading shows a progress bar, if there is a terminal."""


NOT_IN_LOGS: Final = "quotas, SCRAM users, ACLs, delegation tokens and dynamic broker settings"
"""Data that is lost with the metadata of topics."""


class OpenStore(NamedTuple):
    """The metadata store, and this broker's identity in it."""

    store: MetadataStore
    cluster_id: str
    broker_id: int
    is_new: bool
    """True if it knows no topics yet, and only this broker could create any."""


async def open_directories(config: BrokerConfig, executor: Executor, disk: Disk) -> LogDirectories:
    """Lock the log directories and read whose they are."""

    def run_later(work: Callable[[], None]) -> None:
        executor.submit(_run_logged, work)

    settings = LogSettings(
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        run_later=run_later,
        verifies_transactions=config.transaction_partition_verification_enable,
        draw_below=secrets.randbelow,
    )
    try:
        return await asyncio.get_running_loop().run_in_executor(
            executor, LogDirectories.open, config.log_dirs, disk, settings
        )
    except (DirectoryRefusedError, LogDirectoryError) as error:
        raise StartError(str(error)) from None


async def open_store(
    config: BrokerConfig, logs: LogDirectories, executor: Executor, platform: Platform
) -> OpenStore:
    """Open the metadata store, and settle what cluster and broker this is."""
    store = await _connect(config, platform, executor)
    try:
        if store is None:
            store = await _open_embedded(config, logs, executor)
        else:
            _tell_of_unused_metadata(logs)
        patience = store_patience(config, store)
        await patience.do(partial(create_skeleton, store))
        is_new = not config.zookeeper_connect and not await store.children(TOPICS)
        proposed = logs.identity.cluster_id or to_base64(draw_uuid(secrets.token_bytes))
        cluster_id = await patience.do(partial(obtain_cluster_id, store, proposed))
        broker_id = await patience.do(
            partial(_obtain_broker_id, config, logs.identity.broker_id, store)
        )
        await asyncio.get_running_loop().run_in_executor(
            executor, logs.identify, broker_id, cluster_id, platform.clock.now_ms()
        )
    except BaseException as error:
        if store is not None:
            await _close(store)
        if isinstance(error, DirectoryRefusedError | LogDirectoryError | StoreError | OSError):
            raise StartError(str(error)) from None
        raise
    return OpenStore(store, cluster_id, broker_id, is_new)


def store_patience(config: BrokerConfig, store: MetadataStore) -> Patience:
    """Steps of the start wait for ZooKeeper as the first connection did, for a disk not at all."""
    limit_ms = config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms
    return Patience(store, limit_ms if config.zookeeper_connect else 0)


async def _close(store: MetadataStore) -> None:
    """Close a store of a start that has failed: that it cannot be closed is not the reason."""
    try:
        await store.close()
    except (StoreError, OSError) as error:
        logger.warning("metadata store not closed cleanly: %s", error)


async def _connect(
    config: BrokerConfig, platform: Platform, executor: Executor
) -> MetadataStore | None:
    if not config.zookeeper_connect:
        return None
    # Imported only now, since it brings kazoo.
    from broker.startup.zookeeper_security import zookeeper_security  # noqa: PLC0415

    security = await asyncio.get_running_loop().run_in_executor(
        executor, zookeeper_security, config, os.environ
    )
    logger.info("connecting to ZooKeeper at %s (%s)", config.zookeeper_connect, security)
    try:
        return await platform.connect(config, security)
    except ConnectError as error:
        raise StartError(str(error)) from None


def _tell_of_unused_metadata(logs: LogDirectories) -> None:
    for directory in logs.directories:
        if Path(directory.path, JOURNAL_NAME).exists():
            logger.warning(
                "%s holds topics of a broker without ZooKeeper; while zookeeper.connect is set, "
                "they are not served",
                directory.path,
            )


async def _open_embedded(
    config: BrokerConfig, logs: LogDirectories, executor: Executor
) -> MetadataStore:
    directory = _store_directory(logs)
    if logs.identity.cluster_id is not None and not _may_hold_store(directory):
        _tell_of_lost_metadata(config, logs, f"{directory}/{JOURNAL_NAME}")
    try:
        return await EmbeddedStore.open(LocalStoreFiles(directory), executor)
    except DamagedStoreError as error:
        raise StartError(
            f"{directory}: {error}; restore {JOURNAL_NAME} and {SNAPSHOT_NAME} from one backup, or "
            "move both away to go on with the topics that are found, and without their "
            f"configurations, {NOT_IN_LOGS}"
        ) from None


def _tell_of_lost_metadata(config: BrokerConfig, logs: LogDirectories, journal: str) -> None:
    """Warn of metadata lost with the journal of a used directory, if there are logs in one.

    Raises StartError if lost access control lists would open access to everybody.
    """
    online = [one.path for one in logs.directories if one.failure is None]
    names = (name for path in online for name in os.listdir(path))  # noqa: PTH208
    if not any(map(parse_partition_directory, names)):
        return
    lost = f"{journal} is missing in log directories of cluster {logs.identity.cluster_id}"
    if config.authorizer_class_name and config.allow_everyone_if_no_acl_found:
        raise StartError(
            f"{lost}, and with it the ACLs, so that everybody may do everything; restore it, or "
            "set allow.everyone.if.no.acl.found=false until they are created again"
        )
    logger.warning(
        "%s: topics are imported without their configurations, and there are no %s; restore it, "
        "unless another broker kept these elsewhere",
        *(lost, NOT_IN_LOGS),
    )


def _store_directory(logs: LogDirectories) -> str:
    """The log directory with the metadata; on a broker's first start, the first one."""
    online = [one.path for one in logs.directories if one.failure is None]
    for path in online:
        if any(Path(path, name).exists() for name in (JOURNAL_NAME, SNAPSHOT_NAME)):
            return path
    offline = [one.path for one in logs.directories if one.failure is not None]
    if offline and (logs.identity.cluster_id is not None or any(map(_may_hold_store, offline))):
        raise StartError(
            "the metadata of topics is in none of the log directories that can be used, so it "
            f"must be in {' or '.join(offline)}, which cannot be; mend that, or take it out of "
            "log.dirs to go on with the topics of the others"
        )
    return online[0]


def _may_hold_store(path: str) -> bool:
    """Return whether an unusable log directory has the metadata, as far as visible."""
    try:
        return not {JOURNAL_NAME, SNAPSHOT_NAME}.isdisjoint(os.listdir(path))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


async def _obtain_broker_id(config: BrokerConfig, stored: int | None, store: MetadataStore) -> int:
    """The configured id; failing that the one in meta.properties, failing that a new one."""
    if config.broker_id >= 0:
        return config.broker_id
    if stored is not None:
        return stored
    return await generate_broker_id(store, config.reserved_broker_max_id)


def load_logs(
    logs: LogDirectories,
    config_of: Callable[[str], TopicConfig],
    clock: Clock,
    is_stopping: Callable[[], bool],
) -> LoadReport:
    """Load all logs, recovering after a crash; log the findings and the duration.

    Raises StartAbandonedError between two logs when `is_stopping()`; the remaining logs are
    recovered by the next start.
    """
    started_ms = clock.monotonic_ms()
    with LoadingProgress(clock) as progress:

        def show(done: int, total: int, name: str) -> None:
            if is_stopping():
                raise StartAbandonedError(f"stopped after loading {done} of {total} logs")
            progress.show(done, total, name)

        try:
            report = logs.load(config_of, show)
        except (DirectoryRefusedError, LogDirectoryError) as error:
            raise StartError(str(error)) from None
    took_ms = clock.monotonic_ms() - started_ms
    if report.unclean_directories and report.logs:
        logger.info(
            "recovered %d logs in %s after an unclean stop: %d bytes checked, %d cut, "
            "%d removed in whole segments, in %d ms",
            report.logs,
            ", ".join(report.unclean_directories),
            report.bytes_read,
            report.bytes_cut,
            report.bytes_removed,
            took_ms,
        )
    else:
        paths = ", ".join(one.path for one in logs.directories)
        logger.info("loaded %d logs in %d ms from %s", report.logs, took_ms, paths)
    return report


async def adopt(config: BrokerConfig, logs: LogDirectories, store: MetadataStore) -> None:
    """Take the topics of a directory that another broker wrote into a store that is new."""
    found = [
        FoundPartition(
            log.topic,
            log.partition,
            log.topic_id or draw_uuid(secrets.token_bytes),
            log.epochs.latest,
            max(log.producers.producers, default=-1),
        )
        for log in logs
    ]
    adopted = await adopt_topics(store, config.broker_id, found, internal_topic_configs(config))
    if adopted:
        logger.info("imported %d topics found in log.dirs", len(adopted))


def _run_logged(work: Callable[[], None]) -> None:
    try:
        work()
    except LogDirectoryError as error:
        logger.warning("%s", error)
    except Exception:
        logger.exception("background work on a log failed")


class LoadingProgress:
    """A progress bar over the logs, drawn when loading is slow and a terminal is there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._is_seen = sys.stderr.isatty()  # asked once: it is a call of the system
        self._bar: _Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, done: int, total: int, name: str) -> None:
        """Note that `done` of `total` logs of a directory are loaded."""
        if self._bar is None:
            waited_ms = self._clock.monotonic_ms() - self._started_ms
            if waited_ms < PROGRESS_AFTER_MS or not self._is_seen:
                return
            self._bar = _Bar()
        self._bar.update(done, total, name)


class _Bar:
    """The bar itself; `rich` is imported only when there is one to draw."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress  # noqa: PLC0415

        self._progress = Progress(console=Console(stderr=True))
        self._task = self._progress.add_task("loading logs", total=None)
        self._progress.start()

    def update(self, done: int, total: int, name: str) -> None:
        self._progress.update(
            self._task, completed=done, total=total, description=f"loading {name}"
        )

    def close(self) -> None:
        self._progress.stop()
