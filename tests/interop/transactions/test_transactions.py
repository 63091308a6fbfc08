"""Transactions of confluent-kafka, kafka-python and aiokafka, one scenario for all of them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.clients.reading import COMMITTED, READERS, UNCOMMITTED, visible
from tests.interop.clients.transactional import LONGEST_TRANSACTION_MS, PRODUCERS
from tests.interop.conftest import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.clients.reading import Reader
    from tests.interop.clients.transactional import TransactionalProducer
    from tests.interop.conftest import NewName, NewTopicFunction


class Client:
    """Makes producers and readers of one kind, and closes them when the test is over."""

    def __init__(self, name: str, bootstrap: str, closing_later: ExitStack) -> None:
        self._name = name
        self._bootstrap = bootstrap
        self._closing_later = closing_later

    def producer(
        self, transactional_id: str, timeout_ms: int = LONGEST_TRANSACTION_MS
    ) -> TransactionalProducer:
        made: Any = PRODUCERS[self._name](self._bootstrap, transactional_id, timeout_ms)
        self._closing_later.enter_context(closing(made))
        return made  # type: ignore[no-any-return]

    def reader(self, topic: str, group: str, isolation: str = COMMITTED) -> Reader:
        made: Any = READERS[self._name](self._bootstrap, topic, group, isolation)
        self._closing_later.enter_context(closing(made))
        return made  # type: ignore[no-any-return]

    def values(self, topic: str, isolation: str = COMMITTED) -> list[bytes]:
        with closing(READERS[self._name](self._bootstrap, topic, "any", isolation)) as reader:
            return [value for _, _, value in visible(reader)]

    def is_fenced(self, call: Callable[[], None]) -> bool:
        """Say whether `call` fails because another incarnation has taken over."""
        with pytest.raises(Exception) as refused:  # noqa: PT011
            call()
        return bool(PRODUCERS[self._name].is_fenced(refused.value))


@pytest.fixture(params=list(PRODUCERS))
def client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    with ExitStack() as closing_later:
        yield Client(request.param, bootstrap, closing_later)


def send(producer: TransactionalProducer, topic: str, stem: str, partitions: int = 2) -> None:
    for partition in range(partitions):
        for number in range(3):
            producer.send(topic, partition, f"{stem}-{partition}-{number}".encode())


def sent(stem: str, partition: int) -> list[bytes]:
    return [f"{stem}-{partition}-{number}".encode() for number in range(3)]


def test_read_committed_returns_only_committed_transactions(
    client: Client, new_topic: NewTopicFunction, new_name: NewName
) -> None:
    topic = new_topic(partitions=2)
    producer = client.producer(new_name("txn"))
    watcher = client.reader(topic, "any")

    for stem in ("first", "undone", "second"):
        producer.begin()
        send(producer, topic, stem)
        producer.flush()
        if stem == "undone":
            producer.abort()
        else:
            producer.commit()
    producer.begin()
    send(producer, topic, "open")
    producer.flush()

    eventually(lambda: watcher.ends() == {0: 12, 1: 12})
    kept = [value for p in range(2) for stem in ("first", "second") for value in sent(stem, p)]
    every = [
        value
        for p in range(2)
        for stem in ("first", "undone", "second", "open")
        for value in sent(stem, p)
    ]
    assert client.values(topic) == kept
    assert client.values(topic, UNCOMMITTED) == every
    producer.abort()
    eventually(lambda: watcher.ends() == {0: 16, 1: 16})
    assert [value for _, _, value in visible(watcher)] == kept


def test_second_producer_fences_the_first(
    client: Client, new_topic: NewTopicFunction, new_name: NewName
) -> None:
    topic, transactional_id = new_topic(), new_name("txn")
    zombie = client.producer(transactional_id)
    zombie.begin()
    send(zombie, topic, "zombie", 1)
    zombie.flush()

    heir = client.producer(transactional_id)
    heir.begin()
    send(heir, topic, "heir", 1)

    assert client.is_fenced(zombie.commit)
    heir.commit()
    watcher = client.reader(topic, "any")
    eventually(lambda: watcher.ends() == {0: 8})
    assert [value for _, _, value in visible(watcher)] == sent("heir", 0)


def test_transaction_left_open_too_long_is_aborted(
    client: Client, new_topic: NewTopicFunction, new_name: NewName
) -> None:
    topic, transactional_id = new_topic(), new_name("txn")
    watcher = client.reader(topic, "any")
    late = client.producer(transactional_id, 3000)
    late.begin()
    send(late, topic, "late", 1)
    late.flush()
    assert watcher.ends() == {0: 0}

    eventually(lambda: watcher.ends() == {0: 4})

    with pytest.raises(Exception):  # noqa: B017, PT011
        late.commit()
    heir = client.producer(transactional_id)
    heir.begin()
    send(heir, topic, "heir", 1)
    heir.commit()
    eventually(lambda: watcher.ends() == {0: 8})
    assert [value for _, _, value in visible(watcher)] == sent("heir", 0)


def test_offsets_are_committed_atomically_with_their_records(
    client: Client, new_topic: NewTopicFunction, new_name: NewName
) -> None:
    source, target, group = new_topic(), new_topic(), new_name("group")
    filler, producer = client.producer(new_name("txn")), client.producer(new_name("txn"))
    filler.begin()
    send(filler, source, "in", 1)
    filler.commit()
    reader = client.reader(source, group)
    eventually(lambda: reader.ends() == {0: 4})
    found = visible(reader)

    for is_committed in (False, True):
        producer.begin()
        for partition, _, value in found:
            producer.send(target, partition, value.upper())
        producer.send_offsets(source, {0: found[-1][1] + 1}, reader)
        if is_committed:
            producer.commit()
        else:
            producer.abort()
        # aiokafka does not ask for stable offsets: it may see the old one until the marker is in.
        wanted_offset = {0: 3 if is_committed else 0}
        eventually(lambda: reader.committed() == wanted_offset)  # noqa: B023

    wanted = [value.upper() for value in sent("in", 0)]
    eventually(lambda: client.values(target) == wanted)
