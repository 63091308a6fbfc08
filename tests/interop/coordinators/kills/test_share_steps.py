"""kill -9 at each record that a share group has its two coordinators write.

The broker kills itself at a step that `failpoints` names while a share consumer of Apache's is at
work, and is started again. Every record comes, and none comes again that was finished.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from broker.runtime import failpoints
from tests.interop.clients import confluent
from tests.interop.clients.record import Record, Sending
from tests.interop.conftest import against_apache, create_topic, eventually, wait_for_coordinators
from tests.interop.coordinators.test_share_consumers import QUICK
from tests.support import jars
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.conftest import NewName
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache(), reason="Apache has no such stop points"),
]

SETTINGS = {**QUICK, "offsets.topic.num.partitions": "3"}
RECORDS = 40
SILENCE_MS, LIMIT_MS = "4000", "60000"
STEPS = (
    "ShareGroupMemberMetadata",
    "ShareGroupMetadata",
    "ShareGroupStatePartitionMetadata",
    "ShareSnapshot",
    "ShareGroupStatePartitionMetadata:2",
    "ShareGroupTargetAssignmentMember",
    "ShareGroupTargetAssignmentMetadata",
    "ShareGroupCurrentMemberAssignment",
    "ShareUpdate",
    "ShareUpdate:2",
    "ShareGroupMemberMetadataTombstone",
)
DELETION = (
    "ShareGroupStatePartitionMetadata",
    "ShareSnapshotTombstone",
    "ShareGroupMetadataTombstone",
)
GONE = "Group '{}' is not a share group."


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Return the broker that all tests here kill and start again."""
    process = ours(tmp_path_factory.mktemp("mortal"), SETTINGS)
    process.start()
    wait_for_coordinators(process.bootstrap)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with closing(Tools(jars.KAFKA_4)) as found:
        yield found


def restart(broker: BrokerProcess, step: str = "") -> None:
    """Kill it, and start it so that it dies at `step`."""
    broker.kill()
    broker.environment = {failpoints.VARIABLE: step}
    broker.start()


def begin(broker: BrokerProcess, tools: Tools, name: str) -> None:
    """Create a topic with records, and have its group begin with the first of them."""
    if not broker.is_running():
        restart(broker)
    create_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), name, 1)
    of_group = ("--entity-type", "groups", "--entity-name", name)
    server = ("--bootstrap-server", broker.bootstrap)
    earliest = ("--add-config", "share.auto.offset.reset=earliest")
    tools.check("configs", *server, "--alter", *of_group, *earliest)


def send(broker: BrokerProcess, name: str, turn: str) -> set[str]:
    values = [f"{turn}-{number}" for number in range(RECORDS)]
    rows = [Record(0, None, value.encode()) for value in values]
    confluent.produce(broker.bootstrap, name, rows, Sending(style="callback"))
    return set(values)


def read(tools: Tools, broker: BrokerProcess, name: str, *more: str) -> set[str]:
    """Accept records by a share consumer."""
    said = tools.run(
        *("console-share-consumer", "--bootstrap-server", broker.bootstrap, "--topic", name),
        *("--group", name, *more),
    )
    return {line for line in said.lines if line.startswith(("first-", "second-"))}


def lag(tools: Tools, broker: BrokerProcess, name: str) -> list[str]:
    server = ("--bootstrap-server", broker.bootstrap)
    told = tools.run("share-groups", *server, "--describe", "--group", name)
    return [row.split()[4] for row in told.lines if row.startswith(f"{name} ")]


@pytest.mark.parametrize("step", STEPS)
def test_share_consumer_goes_on(
    mortal: BrokerProcess, tools: Tools, new_name: NewName, step: str
) -> None:
    name = new_name("shared")
    begin(mortal, tools, name)
    restart(mortal, step)
    first = send(mortal, name, "first")
    with ThreadPoolExecutor(1) as beside, closing(Tools(jars.KAFKA_4)) as others:
        reading = beside.submit(read, others, mortal, name, "--timeout-ms", SILENCE_MS)
        mortal.wait_until_ended()
        restart(mortal)
        seen = reading.result()
    seen |= read(tools, mortal, name, "--timeout-ms", SILENCE_MS)
    assert seen == first
    eventually(lambda: lag(tools, mortal, name) == ["0"])

    second = send(mortal, name, "second")
    again = read(tools, mortal, name, "--max-messages", str(RECORDS), "--timeout-ms", LIMIT_MS)
    assert again == second


@pytest.mark.parametrize("step", DELETION)
def test_a_share_group_is_deleted_despite_a_kill_at_each_step(
    mortal: BrokerProcess, tools: Tools, new_name: NewName, step: str
) -> None:
    name = new_name("deleted")
    begin(mortal, tools, name)
    first = send(mortal, name, "first")
    some = ("--max-messages", str(RECORDS), "--timeout-ms", LIMIT_MS)
    assert read(tools, mortal, name, *some) == first
    restart(mortal, step)
    deletion = ("share-groups", "--bootstrap-server", mortal.bootstrap, "--delete", "--group", name)
    with ThreadPoolExecutor(1) as beside, closing(Tools(jars.KAFKA_4)) as others:
        deleting = beside.submit(others.run, *deletion)
        mortal.wait_until_ended()
        restart(mortal)
        deleting.result()  # the client has asked again: the group may be gone by then

    assert GONE.format(name) in tools.run(*deletion).output
    assert read(tools, mortal, name, *some) == first
