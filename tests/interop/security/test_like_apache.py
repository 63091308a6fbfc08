"""Authorisation decided as by Apache Kafka's brokers: drawn sequences against both.

Users, their rights and prohibitions, and requests of all APIs in all versions that both serve are
drawn from a seed; the errors in the answers, and what can be seen in them, are the same. Long runs:
`DUEL_STEPS=20000 DUEL_SEED=7`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.interop.security.contestants import ACL, Contestant
from tests.interop.security.duel import Duel
from tests.interop.security.known_differences import is_of_3_9, is_of_4_3
from tests.support.brokers.apache import apache_3, apache_4
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.security.duel import Difference
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.java, pytest.mark.slow]

SHORT, LONG = 200, 2000
STEPS_PER_LATE_ANSWER = 500
SEED = int(os.environ.get("DUEL_SEED", "1"))


def fight(
    both: tuple[Contestant, Contestant], steps: int, is_known: Callable[[Difference], bool]
) -> None:
    """Check that no answer differs, and that about two in three requests are refused."""
    try:
        for one in both:
            one.process.start()
        score = Duel(*both, SEED).fight(steps, is_known)
    finally:
        for one in both:
            one.close()
    assert "\n".join(map(str, score.differences)) == ""
    assert len(score.late) <= 1 + steps // STEPS_PER_LATE_ANSWER, "\n".join(map(str, score.late))
    assert score.asked == steps
    assert steps // 3 < score.refused < steps


def without_zookeeper(directory: Path) -> tuple[Contestant, Contestant]:
    """Ours and Apache Kafka 4."""
    return (
        Contestant.of(lambda port, keys: ours(directory / "ours", keys, port=port)),
        Contestant.of(lambda port, keys: apache_4(directory / "theirs", keys, port=port)),
    )


@pytest.mark.timeout(900)
def test_access_is_that_of_apache_4(tmp_path: Path) -> None:
    fight(without_zookeeper(tmp_path), SHORT, is_of_4_3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_access_is_that_of_apache_4_in_a_long_run(tmp_path: Path) -> None:
    steps = int(os.environ.get("DUEL_STEPS", str(LONG)))
    fight(without_zookeeper(tmp_path), steps, is_of_4_3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_access_with_zookeeper_is_that_of_apache_3(tmp_path: Path) -> None:
    servers = [ZooKeeperServer(tmp_path / name) for name in ("zookeeper", "their-zookeeper")]
    steps = int(os.environ.get("DUEL_STEPS", str(LONG)))

    def our_broker(port: int, keys: dict[str, str]) -> BrokerProcess:
        keys["zookeeper.connect"] = f"127.0.0.1:{servers[0].port}"
        return ours(tmp_path / "ours", keys, port=port)

    def their_broker(port: int, keys: dict[str, str]) -> BrokerProcess:
        return apache_3(tmp_path / "theirs", servers[1].port, keys, port=port)

    try:
        for server in servers:
            server.start()
        both = (Contestant.of(our_broker, ACL), Contestant.of(their_broker, ACL))
        fight(both, steps, is_of_3_9)
    finally:
        for server in servers:
            server.kill()
