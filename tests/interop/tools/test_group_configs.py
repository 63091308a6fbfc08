"""Configurations of groups beside Apache Kafka's: what is described, refused and listed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

REFUSALS = (
    "consumer.session.timeout.ms=1",
    "share.auto.offset.reset=none",
    "share.isolation.level=dirty",
    "streams.num.standby.replicas=9",
    "retention.ms=1",
)
SETTINGS = "consumer.heartbeat.interval.ms=6000,share.auto.offset.reset=by_duration:PT1H"
SHOWN = re.compile(r"^  (\S+)=(\S+) sensitive=(\S+) synonyms=\{(.*)\}$")
OURS = {"share.partition.max.record.locks"}
"""The broker's default is that of 3.9, as all that both versions know."""


@pytest.fixture(scope="module")
def tools_4() -> Iterator[Tools]:
    tools = Tools(jars.KAFKA_4)
    yield tools
    tools.close()


def walk(tools: Tools, broker: BrokerProcess) -> list[object]:
    """Return the tool's output on each step."""

    def configs(*words: str) -> list[str]:
        outcome = tools.run("configs", "--bootstrap-server", broker.bootstrap, *words)
        return [*outcome.lines, *re.findall(r"\w+Exception: .*", outcome.errors)[:1]]

    group = ("--entity-type", "groups", "--entity-name", "readers")

    def described(*words: str) -> list[tuple[str, ...]]:
        lines = configs(*group, "--describe", *words)
        found = sorted(match.groups() for line in lines if (match := SHOWN.match(line)))
        return [one for one in found if one[0] not in OURS]

    said: list[object] = [described("--all")]
    said += [configs(*group, "--alter", "--add-config", refused) for refused in REFUSALS]
    said.append(configs(*group, "--alter", "--add-config", SETTINGS))
    eventually(lambda: bool(described()))
    said.append(described())
    said.append(configs("--entity-type", "groups", "--describe"))
    said.append(configs(*group, "--alter", "--delete-config", "share.auto.offset.reset"))
    eventually(lambda: len(described()) == 1)
    said.append(described())
    return said


def test_kafka_configs_output_for_groups_equals_that_on_apache(
    tools_4: Tools, tmp_path: Path
) -> None:
    walks = []
    for start in (ours, apache_4):
        broker = start(tmp_path / start.__name__)
        broker.start()
        try:
            walks.append(walk(tools_4, broker))
        finally:
            broker.kill()

    assert walks[0] == walks[1]
    assert walks[0][0]
