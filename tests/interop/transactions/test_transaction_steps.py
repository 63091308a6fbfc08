"""kill -9 at each step of a transaction: what is decided comes true whole, what is not is undone.

The broker kills itself at a step that `failpoints` names, is started again, and either the same
client goes on, or it is gone and another one takes its transactional id over.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from broker.runtime import failpoints
from tests.interop.clients.reading import COMMITTED, UNCOMMITTED, ConfluentReader, visible
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import SHORT_SESSIONS, against_apache, create_topic, eventually
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.conftest import NewName
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache(), reason="Apache has no such stop points"),
]

PARTITIONS = 3
NEXT_OFFSET = 77
GIVING_UP_SECONDS = 0.2
COMMIT_STEPS = ("PrepareCommit", "SomeMarked", "AllMarked", "CompleteCommit")
ABORT_STEPS = ("PrepareAbort", "SomeMarked", "AllMarked", "CompleteAbort")
OPENING_STEPS = ("Ongoing", "Ongoing:2")
"""Partitions are added by their first records, the group's offsets by themselves."""

Seen = tuple[list[bytes], set[int]]
"""Committed values by partition, and the group's offsets in all partitions."""


def written(*stems: str) -> list[bytes]:
    return [f"{stem}-{p}".encode() for p in range(PARTITIONS) for stem in stems]


@dataclass(frozen=True, slots=True)
class Scene:
    """A topic, a transactional id and a group, all of the same name, on a broker that dies."""

    broker: BrokerProcess
    name: str

    def producer(self) -> ConfluentProducer:
        return ConfluentProducer(self.broker.bootstrap, self.name)

    def restart(self, step: str = "") -> None:
        """Kill it, if it runs, and start it so that it dies at `step`."""
        self.broker.kill()
        self.broker.environment = {failpoints.VARIABLE: step}
        self.broker.start()

    def write(self, producer: ConfluentProducer, stem: str) -> None:
        """Send a record to each partition, and an offset for the group in each."""
        for partition in range(PARTITIONS):
            producer.send(self.name, partition, f"{stem}-{partition}".encode())
        producer.flush()
        with closing(ConfluentReader(self.broker.bootstrap, self.name, self.name)) as reader:
            producer.send_offsets(self.name, dict.fromkeys(range(PARTITIONS), NEXT_OFFSET), reader)

    def goes_on(self, call: Callable[[], None]) -> None:
        """Call what kills the broker, start that again meanwhile, and wait for the call."""
        with ThreadPoolExecutor(1) as beside:
            calling = beside.submit(call)
            self.broker.wait_until_ended()
            self.restart()
            calling.result()

    def gives_up(self, producer: ConfluentProducer, call: Callable[[], None]) -> None:
        """Call what kills the broker, end the client, and only then start the broker again."""
        producer.patience_seconds = GIVING_UP_SECONDS
        with suppress(KafkaException):  # a decision is told before it is carried out
            call()
        self.broker.wait_until_ended()
        producer.close()
        self.restart()

    def seen(self) -> Seen:
        """Return what is committed, once nothing is pending."""
        eventually(lambda: self._ends(COMMITTED) == self._ends(UNCOMMITTED))
        with closing(ConfluentReader(self.broker.bootstrap, self.name, self.name)) as reader:
            offsets = set(reader.committed().values())
            reader.seek(dict.fromkeys(range(PARTITIONS), 0))
            return [value for _, _, value in visible(reader)], offsets

    def _ends(self, isolation: str) -> dict[int, int]:
        reader = ConfluentReader(self.broker.bootstrap, self.name, "ends", isolation)
        with closing(reader):
            return reader.ends()


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return the broker that all tests here kill and start again."""
    process = ours(tmp_path_factory.mktemp("mortal"), SHORT_SESSIONS)
    yield process
    process.kill()


@pytest.fixture
def scene(mortal: BrokerProcess, new_name: NewName) -> Scene:
    """Create the topic on a running broker, and have one transaction committed there."""
    scene = Scene(mortal, new_name("scene"))
    if not mortal.is_running():
        scene.restart()
    admin = AdminClient({"bootstrap.servers": mortal.bootstrap, "log_level": 0})
    create_topic(admin, scene.name, PARTITIONS)
    with closing(scene.producer()) as producer:
        producer.begin()
        for partition in range(PARTITIONS):
            producer.send(scene.name, partition, f"before-{partition}".encode())
        producer.commit()
    # This one is served when that transaction is complete: what follows counts from there.
    scene.producer().close()
    return scene


def check_it_works_on(scene: Scene, seen: Seen, *stems: str) -> None:
    """Compare what was seen, and commit one more transaction of the same id."""
    offsets = {NEXT_OFFSET} if "it" in stems else {0}
    assert seen == (written("before", *stems), offsets)
    with closing(scene.producer()) as heir:
        heir.begin()
        scene.write(heir, "after")
        heir.commit()
    assert scene.seen() == (written("before", *stems, "after"), {NEXT_OFFSET})


@pytest.mark.parametrize("step", COMMIT_STEPS)
@pytest.mark.parametrize("who", ["client goes on", "client is gone"])
def test_a_prepared_commit_is_completed_after_the_broker_dies_at_each_step(
    scene: Scene, step: str, who: str
) -> None:
    scene.restart(step)
    with closing(scene.producer()) as producer:
        producer.begin()
        scene.write(producer, "it")
        if who == "client goes on":
            scene.goes_on(producer.commit)
        else:
            scene.gives_up(producer, producer.commit)

    check_it_works_on(scene, scene.seen(), "it")


@pytest.mark.parametrize("step", ABORT_STEPS)
def test_a_prepared_abort_hides_all_records_after_the_broker_dies_at_each_step(
    scene: Scene, step: str
) -> None:
    scene.restart(step)
    with closing(scene.producer()) as producer:
        producer.begin()
        scene.write(producer, "undone")
        scene.goes_on(producer.abort)

    check_it_works_on(scene, scene.seen())


@pytest.mark.parametrize("step", OPENING_STEPS)
def test_transaction_goes_on_after_the_broker_dies_while_it_is_opened(
    scene: Scene, step: str
) -> None:
    scene.restart(step)
    with closing(scene.producer()) as producer:
        producer.begin()
        scene.goes_on(partial(scene.write, producer, "it"))
        producer.commit()

    check_it_works_on(scene, scene.seen(), "it")


@pytest.mark.parametrize("step", [*ABORT_STEPS, "Empty"])
def test_takeover_goes_on_after_the_broker_dies_during_it(scene: Scene, step: str) -> None:
    with closing(scene.producer()) as gone:
        gone.begin()
        scene.write(gone, "undone")
    scene.restart(step)

    scene.goes_on(lambda: scene.producer().close())

    check_it_works_on(scene, scene.seen())
