"""kill -9 at each record that a group's coordinator writes, before any answer about it.

The broker kills itself at a step that `failpoints` names, is started again, and the same clients go
on: all that is sent is read, and what was committed stays so.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from broker.runtime import failpoints
from tests.interop.conftest import against_apache, create_topic, wait_for_coordinators
from tests.interop.workloads.loaded_group import PARTITIONS, SETTINGS, LoadedGroup
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewName
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache(), reason="Apache has no such stop points"),
]

FIRST_OF_CONSUMER = (
    "ConsumerGroupMemberMetadata",
    "ConsumerGroupMetadata",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupTargetAssignmentMetadata",
    "ConsumerGroupCurrentMemberAssignment",
    "OffsetCommit",
    "OffsetCommit:3",
)
REBALANCE = (
    "ConsumerGroupMemberMetadata",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupTargetAssignmentMetadata",
    "ConsumerGroupCurrentMemberAssignment",
    "ConsumerGroupCurrentMemberAssignment:3",
)
DEPARTURE = (
    "ConsumerGroupMemberMetadataTombstone",
    "ConsumerGroupTargetAssignmentMemberTombstone",
    "ConsumerGroupCurrentMemberAssignmentTombstone",
)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return the broker that all tests here kill and start again."""
    process = ours(tmp_path_factory.mktemp("mortal"), SETTINGS)
    process.start()
    wait_for_coordinators(process.bootstrap)
    yield process
    process.kill()


@pytest.fixture
def group(mortal: BrokerProcess, new_name: NewName) -> Iterator[LoadedGroup]:
    """Return a group without members, and a topic to which records are sent."""
    if not mortal.is_running():
        restart(mortal)
    name = new_name("steps")
    create_topic(AdminClient({"bootstrap.servers": mortal.bootstrap}), name, PARTITIONS)
    with closing(LoadedGroup(mortal.bootstrap, name)) as loaded:
        yield loaded


def restart(broker: BrokerProcess, step: str = "") -> None:
    """Kill it, and start it so that it dies at `step`."""
    broker.kill()
    broker.environment = {failpoints.VARIABLE: step}
    broker.start()


def goes_on(broker: BrokerProcess, group: LoadedGroup) -> None:
    """Start the broker again when it has died, and have everything read and committed."""
    broker.wait_until_ended()
    restart(broker)
    group.settle()
    group.read_more(100)
    group.check()


@pytest.mark.parametrize("step", FIRST_OF_CONSUMER)
def test_first_member_of_a_consumer_group(
    mortal: BrokerProcess, group: LoadedGroup, step: str
) -> None:
    restart(mortal, step)
    group.join("consumer")
    goes_on(mortal, group)


def test_subscription_by_a_regular_expression(mortal: BrokerProcess, group: LoadedGroup) -> None:
    restart(mortal, "ConsumerGroupRegularExpression")
    group.join("consumer", f"^{group.name}$")
    goes_on(mortal, group)


@pytest.mark.parametrize("step", REBALANCE)
def test_second_member_of_a_consumer_group(
    mortal: BrokerProcess, group: LoadedGroup, step: str
) -> None:
    group.join("consumer")
    group.settle()
    restart(mortal, step)
    group.join("consumer")
    goes_on(mortal, group)


@pytest.mark.parametrize("step", DEPARTURE)
def test_member_leaves_a_consumer_group(
    mortal: BrokerProcess, group: LoadedGroup, step: str
) -> None:
    leaver, _ = (group.join("consumer") for _ in range(2))
    group.settle()
    restart(mortal, step)
    group.leave(leaver)
    goes_on(mortal, group)


@pytest.mark.parametrize("step", ["GroupMetadata", "GroupMetadata:2", "OffsetCommit"])
def test_members_of_a_classic_group(mortal: BrokerProcess, group: LoadedGroup, step: str) -> None:
    first, _, occurrence = step.partition(":")
    if occurrence:  # two that come at the same time have one generation
        group.join("classic")
        group.settle()
    restart(mortal, first)
    for _ in range(1 if occurrence else 2):
        group.join("classic")
    goes_on(mortal, group)


def test_classic_group_becomes_a_consumer_group(mortal: BrokerProcess, group: LoadedGroup) -> None:
    group.join("classic")
    group.settle()
    group.read_more(100)
    restart(mortal, "GroupMetadataTombstone")
    group.join("consumer")
    goes_on(mortal, group)


def test_consumer_group_becomes_a_classic_group(mortal: BrokerProcess, group: LoadedGroup) -> None:
    group.join("classic")
    group.settle()
    last = group.join("consumer")
    group.settle()
    group.read_more(100)
    restart(mortal, "ConsumerGroupMetadataTombstone")
    group.leave(last)
    goes_on(mortal, group)
