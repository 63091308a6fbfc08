"""The first walk through a cluster, with Kafka's tools: describe, produce, kill a leader, read on.

As README shows it, on `tests.support.brokers.cluster` instead of `make cluster`. What the znodes of
the topic hold meanwhile is compared with Apache's in `test_znodes`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.interop.conftest import against_apache
from tests.support.brokers.cluster import Cluster
from tests.support.processes.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import Tools

TOPIC = "walk"
PARTITIONS = 3
LINES = [f"line {number}" for number in range(30)]
FAILOVER_SECONDS = 240.0
TIMEOUT_MS = "15000"

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="three brokers of ours"),
    pytest.mark.slow,
    pytest.mark.java,
    pytest.mark.timeout(900),
]

_DESCRIBED = re.compile(r"Leader: (\S+)\s+Replicas: (\S+)\s+Isr: (\S*)")


class Described(NamedTuple):
    """A partition, as the topics tool shows it."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three brokers."""
    with Cluster(tmp_path) as cluster:
        yield cluster


def test_a_topic_outlives_a_leader(cluster: Cluster, tools_3: Tools) -> None:
    sizes = ("--partitions", str(PARTITIONS), "--replication-factor", "3")
    at = ("--bootstrap-server", cluster.bootstrap)
    tools_3.check("topics", *at, "--create", "--topic", TOPIC, *sizes)

    before = describe(cluster, tools_3)

    everybody = frozenset({0, 1, 2})
    assert sorted(one.leader for one in before) == [0, 1, 2]
    assert all(one.in_sync == everybody for one in before)
    assert all(one.leader == one.replicas[0] for one in before)

    lines = "".join(f"{line}\n" for line in LINES)
    tools_3.check("console-producer", *at, "--topic", TOPIC, stdin=lines)
    # The first group makes the topic of groups' offsets, which wants three live brokers.
    assert read_all(cluster, tools_3) == sorted(LINES)
    dead = before[0].leader
    cluster.members[dead].process.kill()

    assert wait_until(lambda: has_left(describe(cluster, tools_3), dead), FAILOVER_SECONDS)
    after = describe(cluster, tools_3)
    assert [one.replicas for one in after] == [one.replicas for one in before]
    assert all(one.in_sync == everybody - {dead} for one in after)
    assert read_all(cluster, tools_3) == sorted(LINES)

    cluster.members[dead].process.start()

    assert wait_until(lambda: not cluster.ailments(), FAILOVER_SECONDS), cluster.ailments()
    assert read_all(cluster, tools_3) == sorted(LINES)


def describe(cluster: Cluster, tools: Tools) -> list[Described]:
    """Return all partitions of the topic, as described by one of the brokers."""
    at = ("--bootstrap-server", cluster.bootstrap)
    said = tools.check("topics", *at, "--describe", "--topic", TOPIC).output
    return [
        Described(int(leader), numbers(replicas), frozenset(numbers(in_sync)))
        for leader, replicas, in_sync in _DESCRIBED.findall(said)
    ]


def numbers(text: str) -> tuple[int, ...]:
    """Broker ids, separated by commas."""
    return tuple(int(one) for one in text.split(",") if one)


def has_left(partitions: list[Described], broker_id: int) -> bool:
    """Return whether a broker leads nothing, is in no ISR, and every partition has a leader."""
    return all(
        one.leader not in {broker_id, -1} and broker_id not in one.in_sync for one in partitions
    )


def read_all(cluster: Cluster, tools: Tools) -> list[str]:
    """Return the lines that a console consumer reads from the beginning."""
    wanted = ("--max-messages", str(len(LINES)), "--timeout-ms", TIMEOUT_MS)
    read = tools.run_alone(
        "console-consumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", TOPIC, "--from-beginning", *wanted),
    )
    return sorted(read.lines)
