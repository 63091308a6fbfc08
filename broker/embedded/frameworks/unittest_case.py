"""A broker for tests written with `unittest`: a mixin for `TestCase`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

from broker.embedded.embedded_broker import EmbeddedBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.embedded.settings import Isolation, Protocol, Storage, Value

_numbers = itertools.count(1)


class KafkaTestMixin:
    """Gives a test class `self.kafka_broker`, and each test its own `self.kafka_topic`.

    Put it before `TestCase`, `IsolatedAsyncioTestCase`, and those of Django. Faults are cleared
    after each test, and recorded requests before it.
    """

    kafka_config: ClassVar[Mapping[str, Value]] = {}
    """Keys of `server.properties`."""
    kafka_storage: ClassVar[Storage] = "disk"
    kafka_isolation: ClassVar[Isolation] = "thread"
    kafka_security: ClassVar[Protocol | None] = None
    kafka_broker: ClassVar[EmbeddedBroker]
    kafka_topic: str
    addClassCleanup: ClassVar[Callable[..., None]]  # noqa: N815 - TestCase has it
    addCleanup: Callable[..., None]  # noqa: N815

    @classmethod
    def setUpClass(cls) -> None:
        """Start the broker."""
        cls.kafka_broker = EmbeddedBroker(
            cls.kafka_config,
            storage=cls.kafka_storage,
            isolation=cls.kafka_isolation,
            security=cls.kafka_security,
        ).start()
        cls.addClassCleanup(cls.kafka_broker.stop)
        super().setUpClass()  # type: ignore[misc] # TestCase has it

    def setUp(self) -> None:
        """Create the topic."""
        super().setUp()  # type: ignore[misc] # TestCase has it
        self.kafka_topic = f"{type(self).__name__}-{next(_numbers)}"
        self.kafka_broker.create_topic(self.kafka_topic)
        self.addCleanup(self.kafka_broker.delete_topic, self.kafka_topic)
        self.addCleanup(self.kafka_broker.restore)  # the last to be added is the first to be done
        self.kafka_broker.requests.clear()
