"""Share groups over three brokers, when the one that coordinates them is killed.

Share coordinators are on other brokers than the leaders and the groups that ask them, so what is
acknowledged goes over connections between brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coordinator.partitioner import partition_for
from tests.interop.conftest import against_apache, create_topic, eventually
from tests.support import jars
from tests.support.brokers.trio import OFFSETS, Trio
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is our brokers that are killed"),
    pytest.mark.slow,
]

GROUP, TOPIC, PARTITIONS = "g", "t", 3
OFFSETS_PARTITIONS = 3
LINES = 30


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Trio]:
    """A cluster of its own, since features are finalised in it."""
    three = Trio(tmp_path)
    try:
        three.start()
        yield three
    finally:
        three.kill()


def test_acknowledged_records_are_not_delivered_again(trio: Trio) -> None:
    tools = Tools(jars.KAFKA_4)
    server = ("--bootstrap-server", trio.bootstrap)
    try:
        tools.check("features", *server, "upgrade", "--feature", "share.version=1")
        create_topic(trio.admin, TOPIC, PARTITIONS, replicas=3)
        of_group = ("--entity-type", "groups", "--entity-name", GROUP)
        earliest = ("--add-config", "share.auto.offset.reset=earliest")
        tools.check("configs", *server, "--alter", *of_group, *earliest)
        for turn in range(3):
            sent = [f"line {turn} {number}" for number in range(LINES)]
            text = "\n".join(sent) + "\n"
            tools.check("console-producer", *server, "--topic", TOPIC, stdin=text)
            read = tools.check(
                *("console-share-consumer", *server, "--topic", TOPIC, "--group", GROUP),
                *("--max-messages", str(LINES), "--timeout-ms", "60000"),
            )
            assert sorted(each for each in read.lines if each.startswith("line")) == sorted(sent)
            coordinator = partition_for(GROUP, OFFSETS_PARTITIONS)
            leader = trio.leader(OFFSETS, coordinator)
            trio.brokers[leader].kill()
            trio.wait_for_another_leader(OFFSETS, coordinator, leader)
            eventually(lambda: _lag(tools, server) == [0] * PARTITIONS, 60)
            trio.heal()
    finally:
        tools.close()


def _lag(tools: Tools, server: tuple[str, str]) -> list[int]:
    told = tools.run("share-groups", *server, "--describe", "--group", GROUP)
    rows = [line.split() for line in told.lines if line.startswith(f"{GROUP} ")]
    return [int(row[4]) for row in rows if row[4].lstrip("-").isdigit()]
