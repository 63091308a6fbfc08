"""kafka-reassign-partitions moves a replica to another log directory of its broker, past a kill."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.interop.clients import confluent
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import eventually
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import Tools

BEFORE = numbered_records(300, size=20_000)
"""Six megabytes: more than a throttled second moves."""
MEANWHILE = numbered_records(40, size=1000)
RATE = 500_000
TOPIC = "moving"


@dataclass(frozen=True)
class Mover:
    """What an operator does with the tools."""

    tools: Tools
    bootstrap: str
    plan: Path

    @property
    def server(self) -> tuple[str, str]:
        return ("--bootstrap-server", self.bootstrap)

    def replicas(self) -> dict[str, tuple[bool, int]]:
        """By directory: whether it is a future one, and its lag."""
        described = self.tools.check("log-dirs", "--describe", *self.server, "--topic-list", TOPIC)
        return {
            place["logDir"]: (partition["isFuture"], partition["offsetLag"])
            for each in json.loads(described.lines[-1])["brokers"]
            for place in each["logDirs"]
            for partition in place["partitions"]
        }

    def reassign(self, place: str, *options: str) -> str:
        """What kafka-reassign-partitions says."""
        moving = {"topic": TOPIC, "partition": 0, "replicas": [0], "log_dirs": [place]}
        self.plan.write_text(json.dumps({"version": 1, "partitions": [moving]}))
        return self.tools.run(
            *("reassign-partitions", *self.server, *options),
            *("--reassignment-json-file", str(self.plan)),
        ).output


def test_replica_is_moved_throttled_told_of_killed_and_whole(tools: Tools, tmp_path: Path) -> None:
    places = {str(tmp_path / name) for name in ("one", "two")}
    broker = ours(tmp_path / "broker", {"log.dirs": ",".join(places)})
    mover = Mover(tools, broker.bootstrap, tmp_path / "plan.json")
    replicas = mover.replicas
    try:
        broker.start()
        tools.check("topics", "--create", *mover.server, "--topic", TOPIC, "--partitions", "1")
        confluent.produce(broker.bootstrap, TOPIC, BEFORE, Sending())
        (source,) = replicas()
        (target,) = places - {source}

        begun = mover.reassign(target, "--execute", "--replica-alter-log-dirs-throttle", str(RATE))
        assert f"Successfully started moving log directory to {target}" in begun
        eventually(lambda: len(replicas()) == 2)
        assert replicas()[source] == (False, 0)
        is_future, lag = replicas()[target]
        assert is_future
        assert 0 < lag <= len(BEFORE)
        assert "is still in progress" in mover.reassign(target, "--verify", "--preserve-throttles")

        broker.kill()
        broker.start()
        confluent.produce(broker.bootstrap, TOPIC, MEANWHILE, Sending())
        assert replicas()[target][0], "the throttle holds, and so does the move"
        tools.check(
            *("configs", "--alter", *mover.server, "--entity-type", "brokers"),
            *("--entity-name", "0"),
            *("--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second"),
        )
        eventually(lambda: replicas() == {target: (False, 0)})

        verified = mover.reassign(target, "--verify")
        assert f"Reassignment of replica {TOPIC}-0-0 completed successfully." in verified
        confluent.produce(broker.bootstrap, TOPIC, MEANWHILE, Sending())
        expected = [one.value for one in [*BEFORE, *MEANWHILE, *MEANWHILE]]
        read = confluent.read(broker.bootstrap, TOPIC, len(expected))
        assert [one.value for one in read] == expected
    finally:
        broker.kill()
