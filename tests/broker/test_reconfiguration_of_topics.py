"""Notifications of changed configurations: none is lost when the store fails meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.metadata.broker_configs import BrokerConfigs
from broker.metadata.topic_configs import TopicConfigs
from config.broker import BrokerConfig
from config.topic import TopicConfig
from controller.brokers.registration import create_skeleton
from controller.metadata_store.store import StoreUnavailableError
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryEnsemble
from tests.support.written_configs import write_config

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    import pytest

    from controller.metadata_store.store import Znode

TOPIC = "orders"
SEGMENT_BYTES = 5_000_000


class FlakyStore:
    """Store that fails so many reads of notifications, and can be reached again at once."""

    def __init__(self, store: Any, failures: int = 0) -> None:
        self._store = store
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        if self.failures and paths:
            self.failures -= 1
            raise StoreUnavailableError(paths[0], "it is away")
        nodes: list[Znode | None] = await self._store.get_many(paths)
        return nodes


class Watcher:
    """A broker that receives changes; `write` comes from another."""

    def __init__(self) -> None:
        ensemble = MemoryEnsemble()
        self.writer = ensemble.connect()
        self.store: Any = FlakyStore(ensemble.connect())
        self.tasks: list[asyncio.Task[None]] = []
        self.topics = TopicConfigs(self.store, TopicConfig(), self._keep)
        self.brokers = BrokerConfigs(BrokerConfig(broker_id=1), self.topics.dynamic)

    def _keep(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work(), name=name))

    async def start(self) -> None:
        await create_skeleton(self.writer)
        await self.topics.start()
        await self.brokers.load(self.store)


def test_a_change_is_logged_with_the_topics_resulting_configs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "broker")

    async def main() -> None:
        watcher = Watcher()
        await watcher.start()
        for settings in ({"retention.ms": "5", "cleanup.policy": "delete"}, {}):
            await write_config(watcher.writer, "topics", TOPIC, settings)
            await turns()

    asyncio.run(main())
    assert [one.getMessage() for one in caplog.records] == [
        f"topic {TOPIC}: configuration changed: cleanup.policy=delete, retention.ms=5",
        f"topic {TOPIC}: configuration changed: defaults only",
    ]


def test_config_changes_are_applied_after_the_store_failed_in_between() -> None:
    async def main() -> None:
        watcher = Watcher()
        await watcher.start()
        watcher.store.failures = 2
        await write_config(watcher.writer, "topics", TOPIC, {"segment.bytes": str(SEGMENT_BYTES)})
        await turns()
        assert watcher.topics.topic_config(TOPIC).segment_bytes == SEGMENT_BYTES

        await write_config(watcher.writer, "topics", TOPIC, {})
        await turns()
        assert watcher.topics.topic_config(TOPIC) == watcher.topics.defaults
        assert watcher.topics.dynamic.knows_topic(TOPIC)

    asyncio.run(main())


def test_brokers_apply_their_own_and_cluster_default_configs() -> None:
    async def main() -> None:
        watcher = Watcher()
        await watcher.start()
        heard: list[int] = []

        async def hear(config: BrokerConfig) -> None:
            heard.append(config.log_segment_bytes)

        watcher.brokers.on_change(hear)
        for entity, size in (("<default>", 20), ("2", 30), ("1", 40)):
            await write_config(watcher.writer, "brokers", entity, {"log.segment.bytes": str(size)})
            await turns()
        assert heard == [20, 40]
        assert watcher.brokers.layers.cluster == {"log.segment.bytes": "20"}
        assert watcher.brokers.layers.broker == {"log.segment.bytes": "40"}

    asyncio.run(main())


def test_configs_stored_before_the_start_are_applied() -> None:
    async def main() -> None:
        watcher = Watcher()
        await create_skeleton(watcher.writer)
        await write_config(watcher.writer, "brokers", "1", {"log.segment.bytes": "40"})
        await watcher.writer.create("/config/brokers/<default>", b"nonsense")
        await watcher.start()
        assert watcher.brokers.current.log_segment_bytes == 40

    asyncio.run(main())


def test_topics_without_settings_of_their_own_take_new_defaults() -> None:
    async def main() -> None:
        watcher = Watcher()
        await watcher.start()
        await write_config(watcher.writer, "topics", TOPIC, {"retention.ms": "5"})
        await turns()
        told: dict[str, TopicConfig] = {}

        async def hear(topic: str, config: TopicConfig) -> None:
            told[topic] = config

        watcher.topics.on_change(hear)

        await watcher.topics.apply_defaults(
            TopicConfig(segment_bytes=77, retention_ms=9), [TOPIC, "bare"]
        )

        assert (told[TOPIC].segment_bytes, told[TOPIC].retention_ms) == (77, 5)
        assert (told["bare"].segment_bytes, told["bare"].retention_ms) == (77, 9)

    asyncio.run(main())
