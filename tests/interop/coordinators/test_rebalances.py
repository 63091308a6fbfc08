"""A group reassigns its partitions when a member joins, leaves or dies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.workloads.member import MemberOptions
from tests.interop.workloads.member_process import MemberProcess, wait_until, wait_until_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.interop.conftest import NewTopicFunction

    StartMember = Callable[[MemberOptions], MemberProcess]
    NewOptions = Callable[..., MemberOptions]

pytestmark = pytest.mark.slow

PARTITIONS = 6
SHORT_SESSION_MS = 4_000
LONG_SESSION_MS = 120_000
"""Longer than any of these tests: a member missed sooner has left."""

STRATEGIES = [
    ("confluent-kafka", "range"),
    ("confluent-kafka", "roundrobin"),
    ("confluent-kafka", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
]
"""kafka-python 3.0.12's sticky assignor at times loops without end: aiokafka and Java show it."""

STICKY = {"sticky", "cooperative-sticky"}


@pytest.fixture
def start() -> Iterator[StartMember]:
    """Start members that are gone when the test ends, however it ends."""
    started: list[MemberProcess] = []

    def start_one(options: MemberOptions) -> MemberProcess:
        started.append(MemberProcess(options))
        return started[-1]

    yield start_one
    for member in started:
        member.kill()


@pytest.fixture
def new_options(
    bootstrap: str, new_topic: NewTopicFunction, new_group: Callable[[], str]
) -> NewOptions:
    """Return options of a member of a new group that reads a new topic."""

    def create(client: str, strategy: str, **more: Any) -> MemberOptions:
        topic = new_topic(partitions=PARTITIONS)
        return MemberOptions(client, bootstrap, topic, new_group(), strategy, **more)

    return create


@pytest.mark.parametrize(("client", "strategy"), STRATEGIES)
def test_partitions_are_shared_out_on_join_leave_and_death(
    new_options: NewOptions, start: StartMember, client: str, strategy: str
) -> None:
    options = new_options(client, strategy, session_timeout_ms=LONG_SESSION_MS)
    sent = 0

    def send_to_all() -> None:
        nonlocal sent
        for partition in range(PARTITIONS):
            confluent.produce(
                *(options.bootstrap, options.topic, numbered_records(5, partition)),
                Sending(style="callback"),
            )
        sent += 5

    send_to_all()
    first = start(options)
    wait_until_shared([first], PARTITIONS)

    second = start(replace(options, session_timeout_ms=SHORT_SESSION_MS))
    wait_until_shared([first, second], PARTITIONS)
    third = start(options)
    wait_until_shared([first, second, third], PARTITIONS)
    before = [set(first.assigned), set(second.assigned)]
    send_to_all()

    third.leave()
    left_after = wait_until_shared([first, second], PARTITIONS)
    if strategy in STICKY:
        assert before[0] <= set(first.assigned)
        assert before[1] <= set(second.assigned)
    assert left_after < LONG_SESSION_MS / 1000
    send_to_all()

    second.kill()
    missed_after = wait_until_shared([first], PARTITIONS)
    assert missed_after > SHORT_SESSION_MS / 1000 / 3
    send_to_all()

    wanted = {(partition, offset) for partition in range(PARTITIONS) for offset in range(sent)}
    members = [first, second, third]

    def missing() -> set[tuple[int, int]]:
        return wanted - {row for member in members for row in member.records}

    wait_until(lambda: not missing(), members, missing)
    for member in members:
        for partition in range(PARTITIONS):
            offsets = [offset for held, offset in member.records if held == partition]
            assert set(zip([partition] * len(offsets), offsets, strict=True)) <= wanted
    first.leave()


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_static_member_comes_back_without_a_rebalance(
    new_options: NewOptions, start: StartMember, client: str
) -> None:
    options = new_options(client, "range", session_timeout_ms=LONG_SESSION_MS, instance_id="one")
    one, two = start(options), start(replace(options, instance_id="two"))
    wait_until_shared([one, two], PARTITIONS)
    held, changes = two.assigned, len(one.assignments)

    two.kill()
    back = start(two.options)
    wait_until_shared([one, back], PARTITIONS)

    assert back.assigned == held
    assert len(one.assignments) == changes


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_second_member_with_the_same_instance_id_fences_the_first(
    new_options: NewOptions, start: StartMember, client: str
) -> None:
    options = new_options(client, "range", session_timeout_ms=LONG_SESSION_MS, instance_id="one")
    older = start(options)
    wait_until_shared([older], PARTITIONS)

    newer = start(options)
    wait_until_shared([newer], PARTITIONS)

    wait_until(lambda: "fenced" in older.errors().lower(), [older, newer])
    assert newer.assigned == list(range(PARTITIONS))
